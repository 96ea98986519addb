"""Run inside a fenced job: what its sockets may do. Prints a JSON line for each: its name, and what came of it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable


def device() -> str:
    with socket.socket() as made:
        return made.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0").decode()


def let_go_of_its_device() -> str:
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"\0")
        return "free"


def local() -> str:
    socket.socket(socket.AF_UNIX).close()
    return "made"


def datagrams() -> str:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    return "made"


def pair() -> str:
    ours, theirs = socket.socketpair()
    ours.send(b"x")
    return theirs.recv(1).decode()


def gateway() -> str:
    port = int(os.environ["MLFLOW_TRACKING_URI"].rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), 10).close()
    return "answers"


if __name__ == "__main__":
    acts: tuple[Callable[[], str], ...] = (device, let_go_of_its_device, local, datagrams, pair, gateway)
    for act in acts:
        try:
            came = act()
        except OSError as error:
            came = type(error).__name__ if error.errno is None else os.strerror(error.errno)
        print(json.dumps([act.__name__, came]), flush=True)
