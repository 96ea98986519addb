"""Servers on loopback that take messages, refuse them, or never answer."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def webhook() -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Port, and what came: path and body. Paths that begin with `/refuse` get an error."""
    came: list[tuple[str, str]] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append((self.path, self.rfile.read(int(self.headers["content-length"])).decode()))
            self.send_response(500 if self.path.startswith("/refuse") else 200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Says nothing."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Answer)) as port:
        yield port, came


@contextmanager
def mail_sink() -> Iterator[tuple[int, list[str]]]:
    """Port, and the mails that came. Speaks as much SMTP as a sender without encryption needs (RFC 5321)."""
    mails: list[str] = []

    class Session(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(line.encode() + b"\r\n")

        def handle(self) -> None:
            self.say("220 sink")
            for line in self.rfile:
                verb = line[:4].upper()
                if verb == b"DATA":
                    self.say("354 go on")
                    mails.append(self.read_mail())
                    self.say("250 kept")
                elif verb == b"QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 sink")

        def read_mail(self) -> str:
            lines = []
            for line in self.rfile:
                if line == b".\r\n":
                    break
                lines.append(line.decode())
            return "".join(lines)

    class Sink(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with serving(Sink(("127.0.0.1", 0), Session)) as port:
        yield port, mails


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    with ExitStack() as after:
        after.callback(server.server_close)
        after.callback(thread.join)
        after.callback(server.shutdown)
        yield server.server_address[1]


@contextmanager
def silence() -> Iterator[int]:
    """Port of a server that takes connections and never says anything."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(8)
        yield listening.getsockname()[1]


@contextmanager
def nobody() -> Iterator[int]:
    """Port at which connections are refused: it is taken and does not listen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
