"""How a server ends: requests under way are answered, everything it started is gone, exit code 0."""

import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest
from http_server import ask, retrieve, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TOKEN = {"Authorization": "Bearer s3cret"}


@contextmanager
def backend():
    """(url, gate, asked) of a retrieval server that holds a query `slow` until the gate opens, and is never healthy."""
    gate, asked = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(503)

        def do_POST(self):
            queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            if "slow" in queries:
                asked.set()
                gate.wait(120)
            document = {"id": "d", "contents": '"T"\nx'}
            body = json.dumps({"result": [[{"document": document, "score": 1.0}] for _ in queries]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", gate, asked
    finally:
        gate.set()
        server.shutdown()
        server.server_close()


def test_requests_under_way_are_answered_and_no_process_stays(tmp_path):
    with backend() as (url, gate, asked), ThreadPoolExecutor(1) as pool:
        remote = {"kind": "remote", "url": url, "fingerprint": "stub"}
        with started(tmp_path, remote, STOPGAP_TOKEN="s3cret") as server:
            server.until_it_answers(headers=TOKEN)
            assert ask(server.port, "GET", "/health")[0] == 401
            assert retrieve(server.port, ["x"])[0] == 401
            body = {"queries": ["slow"]}
            under_way = pool.submit(ask, server.port, "POST", "/retrieve", body, TOKEN)
            assert asked.wait(60)
            family = server.descendants()
            os.killpg(server.process.pid, signal.SIGINT)  # as Ctrl-C does
            refused = (200, "")
            while refused[0] != 503:
                status, _, text = ask(server.port, "GET", "/health", headers=TOKEN)
                refused = status, text
            assert not under_way.done()
            gate.set()
            assert under_way.result(60)[0] == 200
            code, errors = server.end()
    assert refused == (503, '{"detail":"the server is shutting down"}')
    assert code == 0
    assert errors.splitlines()[0].endswith("answers; the index is loading")
    assert "ready: kind remote, passages 0" in errors
    assert "Traceback" not in errors
    _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    with pytest.raises(ConnectionRefusedError):
        ask(server.port, "GET", "/health")


def test_terminated_while_the_index_loads_it_ends_at_once(tmp_path):
    with backend() as (url, _, _):
        remote = {"kind": "remote", "url": url, "max_retries": 1000}
        with started(tmp_path, remote) as server:
            server.until_it_answers(ready=False)
            assert server.early[0][1] == 503
            server.process.terminate()
            code, errors = server.end()
    assert code == 0
    assert "Traceback" not in errors
    assert "ready" not in errors
