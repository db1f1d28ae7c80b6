"""A scripted HTTP server on loopback, to stand in for a retrieval server or a model's."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that gave up closes its connection while its answer is being written."""


def whole(at, request, body):
    """What is kept of a request."""
    return {"at": at, "method": request.command, "path": request.path, "headers": dict(request.headers), "body": body}


@contextmanager
def serving(script, kept=whole):
    """A server that answers request number n (from 0) with script(n, body) -> (status, headers, body).

    A body of bytes is sent as it is, a list of bytes piece by piece with a pause before each; anything else as JSON.
    What came is kept as kept(time, handler, body) says.
    """
    seen, lock = [], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            size = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(size)) if size else None
            with lock:
                number = len(seen)
                seen.append(kept(time.monotonic(), self, body))
            status, headers, reply = script(number, body)
            pieces = reply if isinstance(reply, list) else [reply if isinstance(reply, bytes) else dumped(reply)]
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(sum(map(len, pieces))))
            self.end_headers()
            for piece in pieces:
                if len(pieces) > 1:
                    time.sleep(0.15)
                self.wfile.write(piece)
                self.wfile.flush()

        def do_POST(self):
            self.do_GET()

        def log_message(self, *args):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def dumped(value):
    return json.dumps(value).encode()
