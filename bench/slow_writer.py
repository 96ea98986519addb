"""A model endpoint in a process of its own that writes words at a steady pace.

`python -m bench.slow_writer PORT PAUSE_S N_WORDS`: each request is answered by a stream of N words. Before them comes
the time of the machine's clock at which the first piece was sent, in seconds.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

from bench.server import free_port


class Writing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pause_s = 0.02
    n_words = 50

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the turn was stopped
            time.sleep(self.pause_s)
            self._piece({"content": f"{time.time():.6f} "})
            for n in range(self.n_words):
                time.sleep(self.pause_s)
                self._piece({"content": f"word{n} "})
            self._piece({}, finish="stop")
            self.wfile.write(b"data: [DONE]\n\n")

    def _piece(self, delta: dict[str, str], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        said = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "slow", "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(said)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Says nothing."""


@contextlib.contextmanager
def slow_writer(*, pause_s: float, n_words: int) -> Iterator[str]:
    """Its base URL, while it runs."""
    port = free_port()
    command = [sys.executable, "-m", "bench.slow_writer", str(port), str(pause_s), str(n_words)]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                with urlopen(f"http://127.0.0.1:{port}/", timeout=1):
                    break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    Writing.pause_s, Writing.n_words = float(sys.argv[2]), int(sys.argv[3])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Writing).serve_forever()
