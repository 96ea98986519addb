"""The first thing a person types answers at once and says everything."""

import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import nightlab

from nightlab.__main__ import main

HEAVY = ("httpx", "rich", "mlflow", "sqlalchemy", "yaml", "psutil", "runtime", "runtime_client", "agent")
COMMANDS = (
    "up", "down", "status", "demo", "simulate",
    "node list", "node cordon", "node uncordon", "node drain", "node reserve", "node unreserve",
    "policy", "pause", "unpause", "stop", "allow", "spend",
    "gc", "job pin", "job unpin", "budget list", "budget set", "budget lift",
    "job run", "job list", "job get", "job logs", "job cancel", "job explain",
    "research start", "research list", "research show", "research resume", "research stop", "research report",
    "research suggest", "research suggestions", "research notify", "research diff", "research take",
    "trial search", "trial list", "trial show", "trial compare",
    "trial reproduce", "trial export", "verify", "research check",
    "chat", "gate list", "gate show", "gate approve", "gate deny", "model calls", "web",
    "sweep report", "sweep history", "sweep notify",
)  # fmt: skip


FOR_OPTIONS = "pydantic"
"""Typer itself imports it when it reads the value of an option, and not for the first help."""


def modules_after(arguments: list[str]) -> set[str]:
    program = (
        "import sys\n"
        "from nightlab.__main__ import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit:\n"
        "    print('MODULES', *sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stderr.partition("MODULES")[2].split()}


def test_help_imports_nothing_heavy() -> None:
    assert modules_after(["--help"]).isdisjoint({*HEAVY, FOR_OPTIONS})


def test_a_wrong_command_imports_nothing_heavy() -> None:
    assert modules_after(["jbo"]).isdisjoint(HEAVY)


def test_help_of_job_run_imports_nothing_heavy() -> None:
    assert modules_after(["job", "run", "--help"]).isdisjoint(HEAVY)


def test_no_arguments_show_the_help() -> None:
    assert nightlab().out == nightlab("--help").out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    assert f"  nightlab {command}" in capsys.readouterr().out


def test_help_names_every_command() -> None:
    shown = nightlab("--help").out
    assert all(f"  {command.split()[0]} " in shown for command in COMMANDS)


def test_an_unknown_command_is_wrong_use_with_a_suggestion() -> None:
    ended = nightlab("statsu")
    assert ended.exit_code == 2
    assert "'status'" in ended.err


@pytest.mark.parametrize("group", ["job", "node", "research", "sweep", "trial"])
def test_a_group_alone_shows_its_help(group: str) -> None:
    assert nightlab(group).out == nightlab(group, "--help").out


def test_a_wrong_choice_is_told_in_words_of_ours() -> None:
    ended = nightlab("job", "run", "--priority", "urgent", "--", "true")
    assert ended.exit_code == 2
    assert "'urgent' is not one of 'critical', 'normal', 'exploratory'" in ended.err
    assert "Value error" not in ended.err


def test_options_after_a_command_of_one_word_are_refused() -> None:
    ended = nightlab("job", "run", "--dry-run", "python -c 1", "--gpus", "1")
    assert ended.exit_code == 2
    assert "--gpus stands after the command" in ended.err


def test_wrong_use_is_an_envelope_with_json() -> None:
    ended = nightlab("job", "list", "--limit", "many", "--json")
    assert ended.exit_code == 2
    assert ended.error["kind"] == "invalid"
    assert "--limit" in ended.error["message"]


def test_version_is_printed() -> None:
    assert nightlab("--version").out.startswith("nightlab ")


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_fault(redirection: str, tmp_path: Path) -> None:
    command = f'"{sys.executable}" -m nightlab node list --home "{tmp_path}" {redirection}'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "bug" not in done.stderr


def test_a_full_disk_under_standard_output_is_said_in_a_sentence() -> None:
    command = f'"{sys.executable}" -m nightlab job list --limit many --json >/dev/full'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("nightlab: ")
    assert "Traceback" not in done.stderr
