"""`stopgap serve` in a process of its own, and plain HTTP to ask it."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import yaml

ROOT = Path(__file__).resolve().parents[2]
START_S = 240


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, method, path, body=None, headers=(), timeout=120):
    """(status, headers, text) of one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, content, {"Content-Type": "application/json", **dict(headers)})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read().decode()
    finally:
        connection.close()


def retrieve(port, queries, **fields):
    """(status, the JSON) of a POST /retrieve; fields are further keys of its body."""
    status, _, text = ask(port, "POST", "/retrieve", {"queries": queries, **fields})
    return status, json.loads(text)


class Running:
    """A started server. `early` holds what it answered before it was ready, as (path, status, text)."""

    def __init__(self, process, port):
        self.process = process
        self.port = port
        self.early = []

    def until_it_answers(self, *paths, ready=True, headers=()):
        """Asks the paths in turn until one is served, or just until anything is answered."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.process.stderr.read()
            try:
                for path in paths or ("/health",):
                    body = {"queries": ["x"]} if path == "/retrieve" else None
                    status, _, text = ask(self.port, "POST" if body else "GET", path, body, headers)
                    if status == 200:
                        return self
                    self.early.append((path, status, text))
            except ConnectionError:
                pass
            if self.early and not ready:
                return self
            time.sleep(0.05)
        raise AssertionError(f"not ready within {START_S} s: {self.early[-3:]}")

    def end(self):
        """(exit code, standard error) once it has ended by itself."""
        _, errors = self.process.communicate(timeout=120)
        return self.process.returncode, errors

    def descendants(self):
        return psutil.Process(self.process.pid).children(recursive=True)


@contextmanager
def started(folder, retriever, *options, model=None, **environment):
    """A server of a retriever's configuration, given as the mapping of its YAML; of a whole experiment with a model."""
    config = {
        "name": "served",
        "questions": {"path": str(folder / "none.jsonl")},
        "retriever": retriever,
        "models": {"main": model or {"kind": "scripted"}},
        "truncate": {"kind": "gapr"},
    }
    if model is None:
        options = ("--retriever", *options)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    port = free_port()
    command = [sys.executable, "-m", "jobs", "serve", str(path), "--port", str(port), *options]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Running(process, port)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
