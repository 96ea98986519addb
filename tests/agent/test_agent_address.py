"""Where the API of the agent service is, as its file says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.web.address import ADDRESS_FILE, port_before, url_of, write_address

URL = "http://127.0.0.1:7072"


def test_the_address_is_that_of_the_service_that_runs_and_its_port_outlives_it(tmp_path: Path) -> None:
    write_address(tmp_path, URL)
    assert url_of(tmp_path, os.getpid()) == URL
    assert url_of(tmp_path, os.getpid() + 1) is None
    assert url_of(tmp_path, None) is None
    assert port_before(tmp_path) == 7072


@pytest.mark.parametrize("content", [None, "", "[]", '{"port": "x"}', '{"pid": 1}'])
def test_a_file_that_says_nothing_of_use_is_no_address(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / ADDRESS_FILE).write_text(content)
    assert (url_of(tmp_path, 1), port_before(tmp_path)) == (None, None)
