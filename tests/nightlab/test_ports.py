"""Which ports services take."""

import socket
from dataclasses import replace
from pathlib import Path

from nightlab.services.ports import free_ports
from nightlab.services.settings import ServiceSettings
from nightlab.services.starting import with_ports

ANY = ServiceSettings(home=Path("/nowhere"), port=0, mlflow_port=0)


def test_any_port_is_that_of_the_last_time_which_running_jobs_know() -> None:
    port, mlflow_port = free_ports(2)
    before = replace(ANY, port=port, mlflow_port=mlflow_port)
    assert with_ports(ANY, before) == before


def test_a_port_that_was_taken_since_is_replaced() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert with_ports(ANY, replace(ANY, port=port)).port not in (0, port)


def test_two_services_never_share_a_port() -> None:
    (port,) = free_ports(1)
    chosen = with_ports(replace(ANY, port=port), replace(ANY, mlflow_port=port))
    assert chosen.mlflow_port not in (0, port)
