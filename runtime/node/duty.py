"""Whose end is the end of an attempt: its leader's, and after a notice that of whom it waited for.

A shell that waits for `python train.py` dies of the notice's SIGTERM at once, while the training writes its checkpoint.
So the children of a process that died of that signal inherit its duty: they are awaited in its place, and their exit
code counts. For that they must still be there when it dies: a child that ended before would be collected by its dying
parent, and its exit code with it. So whoever dies of the signal gets it before its children do. Standard library only:
the supervisors import this.
"""

from __future__ import annotations

import os
import select
import signal
import time

from runtime.node import processes

ENDED_BY_TERM = (-signal.SIGTERM, 128 + signal.SIGTERM)
"""By the signal itself, or as shells put it into an exit code."""
DYING_S = 0.25
"""For all who die of the signal before their children get it; one that is stopped does not die before it goes on."""


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

    def ask_to_leave(self) -> None:
        """The notice's signal to the leader's group, from the top down as far as its members die of it."""
        until = time.monotonic() + DYING_S
        open_ends = [self.leader]
        while open_ends:
            pid = open_ends.pop()
            heirs = (self._heirs or {}).get(pid)
            if heirs and processes.dies_of(pid, signal.SIGTERM):
                _end(pid, until)
                open_ends += heirs
        try:
            os.killpg(self.leader, signal.SIGTERM)
        except ProcessLookupError:
            return

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


def _end(pid: int, until: float) -> None:
    """Send the signal and wait until the process has left its children to whoever inherits them."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        its_end = select.poll()
        its_end.register(descriptor, select.POLLIN)
        its_end.poll(max(until - time.monotonic(), 0.0) * 1000)
    except (ProcessLookupError, PermissionError):
        return
    finally:
        os.close(descriptor)
