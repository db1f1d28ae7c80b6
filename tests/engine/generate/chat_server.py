"""A scripted chat server on loopback, and requests sent to it through OpenAIGenerator."""

import asyncio
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai  # noqa: F401  (its import takes seconds, which must not count as waiting in a test)

from engine.config import OpenAIConfig
from engine.generate import GenerationRequest
from engine.generate.openai import OpenAIGenerator

KEY = "sk-very-secret-0123456789"
KEY_ENV = "TEST_KEY"
SCHEMA = {"type": "object", "properties": {"sufficient": {"type": "boolean"}}, "required": ["sufficient"]}


def reply(text="Paris", *, finish="stop", usage=(11, 3), logprobs=None):
    body = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text},
                "logprobs": None if logprobs is None else {"content": logprobs},
            }
        ],
    }
    if usage:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return 200, {}, body


def error(status, message, headers=(), **fields):
    return status, dict(headers), {"error": {"message": message, **fields}}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that gave up closes its connection while its answer is being written."""


@contextmanager
def serving(script):
    """A chat server that answers request number n (from 0) with script(n, body) -> (status, headers, body)."""
    seen, lock = [], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(seen)
                seen.append({"at": time.monotonic(), "key": self.headers["Authorization"], **body})
            status, headers, answer = script(number, body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        server.server_close()


def config(url, **fields):
    return OpenAIConfig(model="m", base_url=url, api_key_env=KEY_ENV, **fields)


def request(text="Where is the tower?", **fields):
    fields = {"role": "reasoner", "max_tokens": 20, **fields}
    return GenerationRequest(messages=({"role": "user", "content": text},), **fields)


def ask(url, *requests, **fields):
    """Outcomes (values or exceptions) of requests sent together through one generator."""

    async def main():
        generator = OpenAIGenerator(config(url, **fields))
        try:
            return await asyncio.gather(*(generator.generate(r) for r in requests), return_exceptions=True)
        finally:
            await generator.aclose()

    return asyncio.run(main())
