"""Readers of chats in a process of their own: `python -m bench.chat_readers HOME N`.

Begins N chats, prints a line when each answer is being written, and stops them all when its standard input ends.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agent.web.address import ADDRESS_FILE
from agent.web.keys import open_keys


@dataclass(slots=True)
class Service:
    """Talking to the API of an agent service."""

    http: httpx.Client

    def post(self, path: str, **body: Any) -> Any:
        response = self.http.post(path, json=body)
        response.raise_for_status()
        return response.json()["data"]

    def turn(self, chat_id: str, after: int) -> Iterator[tuple[str, Any]]:
        """Say something and give the events of the turn as they come, up to its end."""
        with self.http.stream("GET", f"/v1/chats/{chat_id}/stream?after={after}", timeout=60) as response:
            lines = response.iter_lines()
            next(lines)
            self.post(f"/v1/chats/{chat_id}/say", text="how is it going?")
            kind = ""
            for line in lines:
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                    yield kind, data
                    if kind == "entry" and data["ends_turn"]:
                        return


@contextmanager
def opened(home: Path) -> Iterator[Service]:
    """The service of a home that is served."""
    url = json.loads((home / ADDRESS_FILE).read_text(encoding="utf-8"))["url"]
    headers = {"Authorization": f"Bearer {open_keys(home).owner_token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=30) as http:
        yield Service(http)


def main(home: Path, n_chats: int) -> None:
    with opened(home) as service:
        has_begun = threading.Semaphore(0)

        def read(chat_id: str) -> None:
            has_told = False
            for kind, _ in service.turn(chat_id, 0):
                if kind == "text" and not has_told:
                    has_told = True
                    has_begun.release()

        made = [service.post("/v1/chats")["chat_id"] for _ in range(n_chats)]
        readers = [threading.Thread(target=read, args=(one,), daemon=True) for one in made]
        for one in readers:
            one.start()
        for _ in made:
            if not has_begun.acquire(timeout=60):
                raise SystemExit("a chat did not begin to answer within a minute")
        print("all answer", flush=True)
        sys.stdin.read()
        for chat_id in made:
            service.post(f"/v1/chats/{chat_id}/stop")
        for one in readers:
            one.join(timeout=20)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
