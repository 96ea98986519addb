"""`nightlab web` beside a supervisor of this process: the link, whose token it holds, and what it says when down."""

from __future__ import annotations

import json
import os
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.web import page_files
from agent.web.address import write_address
from agent.web.keys import open_keys
from nightlab.__main__ import main
from nightlab.failure import Failure
from nightlab.services.programs import AGENT
from nightlab.services.settings import ServiceFiles
from nightlab.services.state import Phase, ServicePhase, ServiceState, SupervisorState, locked
from nightlab.web_link import OPENING_FILE, await_agent_url

URL = "http://127.0.0.1:7072"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of services that are up, with a page that is built."""
    built, files = tmp_path / "static", ServiceFiles(tmp_path)
    built.mkdir()
    (built / "index.html").touch()
    monkeypatch.setattr(page_files, "BUILT", built)
    files.make(with_mlflow=False)
    agent = ServiceState(
        phase=ServicePhase.RUNNING, pid=os.getpid(), process_started_at=None, n_restarts=0, last_exit=None
    )
    SupervisorState(pid=1, started_at=0.0, phase=Phase.RUNNING, services={AGENT: agent}).write(files)
    write_address(tmp_path, URL)
    with locked(files.supervisor_lock):
        yield tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["web", *words])
    said = capsys.readouterr()
    return int(str(ended.value.code or 0)), said.out, said.err


def test_the_link_holds_the_owners_token_where_no_server_sees_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = open_keys(home).owner_token
    assert told(capsys, "--home", str(home)) == (0, f"{URL}/#token={token}\n", "")


def test_a_readers_link_holds_the_readers_token_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = open_keys(home)
    _, out, _ = told(capsys, "--home", str(home), "--reader", "--json")
    data = json.loads(out)["data"]
    assert (data["link"], data["role"]) == (f"{URL}/#token={keys.reader_token}", "reader")
    assert keys.owner_token not in out


def test_an_unknown_session_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "--home", str(home), "--session", "s9")
    assert (code, out) == (2, "")
    assert "s9" in err


def test_a_browser_is_led_there_by_a_private_file(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: bool(opened.append(url)) or True)
    told(capsys, "--home", str(home), "--open")
    token, file = open_keys(home).owner_token, home / OPENING_FILE
    assert opened == [file.as_uri()]
    assert f"{URL}/#token={token}" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_without_services_it_says_what_to_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "--home", str(tmp_path / "none"))
    assert (code, out) == (3, "")
    assert "nightlab up" in err


def test_a_page_that_is_not_built_is_said_beside_the_link(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "static" / "index.html").unlink()
    code, out, err = told(capsys, "--home", str(home))
    assert (code, "make web" in err) == (0, True)
    assert out.startswith(URL)


def test_an_agent_service_without_an_address_is_said_with_its_log(home: Path) -> None:
    (home / "agent-address.json").unlink()
    with pytest.raises(Failure, match=r"its log in .*logs"):
        await_agent_url(home, wait_s=0.0)
