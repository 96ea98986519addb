"""Whose end is the end of an attempt: its leader's, and after a notice that of whom it waited for.

A shell that waits for `python train.py` dies of the notice's SIGTERM at once, while the training writes its checkpoint.
So the children of a process that died of that signal inherit its duty: they are awaited in its place, and their exit
code counts. Standard library only: the supervisors import this.
"""

from __future__ import annotations

import signal

from runtime.node import processes

ENDED_BY_TERM = (-signal.SIGTERM, 128 + signal.SIGTERM)
"""By the signal itself, or as shells put it into an exit code."""


class Duty:
    """Changed by the process that reaps, alone."""

    def __init__(self) -> None:
        self.leader = 0
        self.awaited: set[int] = set()
        self.reaped: dict[int, int] = {}
        """Exit codes by pid, of all that ended."""
        self._codes: list[int] = []
        """Of awaited processes, in the order of their ends; the leader's is first."""
        self._heirs: dict[int, list[int]] | None = None
        """Children by parent when notice was given; None: none was."""

    def begin(self, leader: int) -> None:
        self.leader = leader
        self.awaited = {leader}

    def notice(self) -> None:
        """Right before the notice's signal: who has which children."""
        self._heirs = processes.children_by_parent(processes.table())

    def ended(self, pid: int, code: int) -> None:
        self.reaped[pid] = code
        if pid in self.awaited:
            self._note(pid)

    def exit_code(self) -> int | None:
        """Of the last that ended by itself, else the leader's."""
        by_themselves = [code for code in self._codes if code >= 0 and code not in ENDED_BY_TERM]
        return by_themselves[-1] if by_themselves else self.reaped.get(self.leader)

    def _note(self, pid: int) -> None:
        self.awaited.discard(pid)
        code = self.reaped[pid]
        self._codes.append(code)
        if code in ENDED_BY_TERM and self._heirs is not None:
            self._inherit(pid, self._heirs)

    def _inherit(self, pid: int, heirs: dict[int, list[int]]) -> None:
        for heir in heirs.get(pid, ()):
            if heir in self.reaped:
                self._note(heir)
            elif processes.look_up(heir) is not None:
                self.awaited.add(heir)
            else:
                self._inherit(heir, heirs)  # Its parent saw it end before ending itself.
