"""A rendezvous port for each attempt: no other attempt of any nightlab on this machine gets it while this one lives.

The lock of the port is kept as long as the supervisor lives. The port itself is bound until the command starts, and
then left to it. It is taken from below the range that the kernel gives out by itself, so that no other program comes
by it by chance. Standard library only: the supervisors import this.
"""

from __future__ import annotations

import errno
import os
import socket

from runtime.node import machine_locks

_LEFT_OUT = frozenset({29400, 29500})
"""Where launchers of training programs meet by default: somebody's own script may be there any moment."""
_N_PORTS = 12_000
_LOWEST = 10_240
_MOST_TRIES = 400


class Port:
    """Bound and locked. `let_go` unbinds it; the lock stays with this process."""

    def __init__(self, number: int, bound: socket.socket, lock: int) -> None:
        self.number = number
        self._bound = bound
        self._lock = lock

    def let_go(self) -> None:
        """Unbind it in this process. A child that was forked before keeps it bound until it closes it, or executes."""
        self._bound.close()

    def give_back(self) -> None:
        self._bound.close()
        os.close(self._lock)


def hold(start: int, folder: str | None = None) -> Port:
    """Bind and lock a free port; `start` (any number) spreads the attempts over the range.

    Raises:
        OSError: (EADDRINUSE) none was found.
    """
    low, n_ports = reach()
    for n in range(min(n_ports, _MOST_TRIES)):
        number = low + (start + n) % n_ports
        if number in _LEFT_OUT:
            continue
        try:
            lock = machine_locks.take(machine_locks.path_of(f"port-{number}", folder))
        except machine_locks.Foreign:
            continue
        if lock is None:
            continue
        bound = _bind(number)
        if bound is not None:
            return Port(number, bound, lock)
        os.close(lock)
    raise OSError(errno.EADDRINUSE, "no free port for MASTER_PORT", f"{low} to {low + n_ports - 1}")


def reach() -> tuple[int, int]:
    """The first port that is given to attempts, and how many there are."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            lowest_by_kernel = int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        lowest_by_kernel = 32_768
    low = max(_LOWEST, lowest_by_kernel - _N_PORTS)
    return low, max(1_000, min(_N_PORTS, lowest_by_kernel - low))


def _bind(number: int) -> socket.socket | None:
    """For all addresses, as training programs do; nobody else can bind it, and nobody can connect. None: in use.

    Without SO_REUSEADDR: two sockets that both have it share a port until one of them listens (socket(7)).
    """
    for family, address in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
        try:
            bound = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        except OSError:
            continue  # No IPv6 on this machine.
        try:
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            bound.bind((address, number))
        except OSError as error:
            bound.close()
            if error.errno == errno.EADDRINUSE:
                return None
            continue
        return bound
    return None
