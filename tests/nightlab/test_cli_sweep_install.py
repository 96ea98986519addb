"""Lines of the crontab and timers of systemd for sweeps, with programs that keep their crontab in a file."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_process import Ended, nightlab

from nightlab.__main__ import main
from nightlab.schedule.crontab_text import LineState, edited, line_of, line_state, mark_of, zones_before
from nightlab.schedule.installed import schedules
from nightlab.schedule.units import calendar_lines, service_unit, sweep_units

pytestmark = pytest.mark.cli

SWEEP = "sweep: {name}\ntask: task.yaml\nmethod: {{kind: grid, values: {{lr: [1.0e-3]}}}}\ntime_zone: Asia/Tokyo\n"
CRONTAB = '#!/bin/sh\ncase "$1" in\n-l) [ -e {file} ] && exec cat {file}; echo "no crontab for me" >&2; exit 1;;\n'
CRONTAB += "-) exec cat > {file};;\nesac\n"
BEFORE = b"# mine, \xff not UTF-8\nMAILTO=me\n\n  5 4 * * *   backup   # nightlab sweep digits\n@daily x"


class Place:
    """A home, a sweep file in a folder with a blank, and a PATH with our own crontab and systemctl programs."""

    def __init__(self, folder: Path) -> None:
        self.home, self.tab, self.bin = folder / "home", folder / "tab", folder / "bin"
        self.calls = folder / "calls"
        self.bin.mkdir()
        self.program("crontab", CRONTAB.format(file=self.tab))
        self.program("systemctl", f'#!/bin/sh\necho "$@" >> {self.calls}\n')
        self.file = self.sweep("my night's", "digits")
        self.config = folder / "config"

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def sweep(self, folder: str, name: str) -> Path:
        path = self.home.parent / folder / "sweep.yaml"
        path.parent.mkdir()
        path.write_text(SWEEP.format(name=name))
        return path

    def run(self, *arguments: str) -> Ended:
        return self.command("sweep", *arguments)

    def command(self, *arguments: str) -> Ended:
        path = f"{self.bin}:{os.defpath}"
        return nightlab(*arguments, home=self.home, PATH=path, XDG_CONFIG_HOME=str(self.config), TZ="UTC")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_damaged_record_is_told_with_what_to_do(place: Place) -> None:
    assert place.run("install", str(place.file), "--at", "30 22 * * 1-5").exit_code == 0
    record = place.home / "sweeps" / "digits.json"
    record.write_text("{")
    ended = place.run("uninstall", "digits")
    assert ended.exit_code == 1
    assert f"{record} is damaged" in ended.err
    assert "install the sweep again, which replaces its line" in ended.err


def test_one_line_is_written_and_taken_away_and_all_else_is_kept_byte_for_byte(place: Place) -> None:
    place.tab.write_bytes(BEFORE + b"\n")
    first = place.run("install", str(place.file), "--at", "30 22 * * 1-5", "--json")
    again = place.run("install", str(place.file), "--at", "0 23 * * *", "--json")
    assert (first.exit_code, again.exit_code) == (0, 0), again.err + again.out
    text = place.tab.read_bytes()
    assert text.startswith(BEFORE + b"\n0 23 * * * /")
    assert text == BEFORE + b"\n" + again.data["line"].encode() + b"\n"
    assert place.run("uninstall", str(place.file)).exit_code == 0
    assert place.tab.read_bytes() == BEFORE + b"\n"
    assert place.run("uninstall", "digits", "--json").error["code"] == "not_installed"


def test_a_second_sweep_of_that_name_is_refused(place: Place) -> None:
    place.run("install", str(place.file), "--at", "@daily")
    other = place.run("install", str(place.sweep("other", "digits")), "--at", "@daily", "--json")
    assert (other.exit_code, other.error["code"]) == (2, "same_name")
    assert str(place.file) in other.error["message"]


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        (None, "no_crontab", "install cron"),
        (
            "#!/bin/sh\necho 'You (me) are not allowed to use this program' >&2; exit 1\n",
            "crontab_refused",
            "cron.allow",
        ),
        ('#!/bin/sh\n[ "$1" = -l ] && date +%N && exit 0\ncat >/dev/null\n', "crontab_changed", "somebody else"),
    ],
)
def test_a_crontab_that_can_not_be_had_is_told_and_nothing_is_installed(
    place: Place, text: str | None, code: str, hint: str
) -> None:
    if text is None:
        (place.bin / "crontab").unlink()
        done = nightlab(
            "sweep", "install", str(place.file), "--at", "@daily", "--json", home=place.home, PATH=str(place.bin)
        )
    else:
        place.program("crontab", text)
        done = place.run("install", str(place.file), "--at", "@daily", "--json")
    assert done.error["code"] == code
    assert hint in done.error["message"]
    assert schedules(place.home, time.time()) == []


def test_a_timer_is_written_enabled_and_taken_away(place: Place) -> None:
    done = place.run("install", str(place.file), "--at", "30 22 * * 1-5", "--systemd", "--json")
    assert done.exit_code == 0, done.err
    units = place.config / "systemd" / "user"
    timer = done.data["line"]
    assert "OnCalendar=Mon,Tue,Wed,Thu,Fri *-*-* 22:30:00\nPersistent=true" in (units / timer).read_text()
    assert place.calls.read_text().splitlines() == ["--user daemon-reload", f"--user enable --now {timer}"]
    assert not place.tab.exists()
    assert place.run("uninstall", "digits").exit_code == 0
    assert list(units.iterdir()) == []


def test_without_a_systemd_instance_nothing_is_left(place: Place) -> None:
    place.program("systemctl", "#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n")
    done = place.run("install", str(place.file), "--at", "@daily", "--systemd", "--json")
    assert done.error["code"] == "no_systemd"
    assert list((place.config / "systemd" / "user").iterdir()) == []
    assert schedules(place.home, time.time()) == []


def test_the_runtime_is_one_reboot_line_or_one_unit_and_each_takes_the_place_of_the_other(place: Place) -> None:
    place.tab.write_bytes(BEFORE + b"\n")
    assert place.command("service", "install", "--cron", "--json").data["line"].startswith("@reboot ")
    assert place.tab.read_bytes().count(b"nightlab up --as-before --home") == 1
    assert place.command("service", "status", "--json").data["kind"] == "cron"
    unit = place.command("service", "install", "--json").data["line"]
    assert place.tab.read_bytes() == BEFORE + b"\n"
    text = (place.config / "systemd" / "user" / unit).read_text()
    assert "KillMode=process" in text
    assert f'"up" "--as-before" "--foreground" "--home" "{place.home}"' in text
    assert place.command("service", "status", "--json").data["kind"] == "systemd"
    assert place.command("service", "uninstall", "--json").data["removed"] == ["systemd"]
    assert place.command("service", "status", "--json").data["kind"] is None


def test_missed_starts_are_counted_from_the_install(place: Place) -> None:
    place.run("install", str(place.file), "--at", "0 22 * * *")
    two_days_on = time.time() + 2 * 86400
    (schedule,) = schedules(place.home, two_days_on)
    assert len(schedule.missed) == 2
    assert schedule.next_at > two_days_on


def test_a_line_without_its_end_is_ended_first() -> None:
    mark = mark_of("sweep digits", Path("/home/x"))
    assert edited(BEFORE, f"@daily y {mark}".encode(), mark) == BEFORE + f"\n@daily y {mark}\n".encode()


def test_a_commented_out_line_is_ours_and_is_replaced_or_taken_away_whole() -> None:
    mark = mark_of("sweep digits", Path("/home/x"))
    ours, disabled = f"@daily y {mark}\n".encode(), f"# #0 22 * * * y {mark}\n".encode()
    remark = f"# why {mark}\n{mark}\n".encode()
    assert line_state(remark + ours, mark) is LineState.IN_FORCE
    assert line_state(disabled + ours, mark) is LineState.IN_FORCE
    assert line_state(remark + disabled, mark) is LineState.COMMENTED_OUT
    assert line_state(remark, mark) is LineState.ABSENT
    assert edited(remark + disabled + BEFORE + b"\n" + ours, ours.strip(), mark) == remark + ours + BEFORE + b"\n"
    assert edited(remark + disabled, None, mark) == remark


def test_zones_that_count_for_a_line_are_the_last_ones_set_before_it() -> None:
    mark = mark_of("sweep digits", Path("/home/x"))
    text = f'TZ=UTC\n# CRON_TZ=UTC\n "CRON_TZ" = "Asia/Tokyo" \nTZ = :Europe/Berlin\n@daily y {mark}\nCRON_TZ=UTC\n'
    assert zones_before(text.encode(), mark) == {"CRON_TZ": "Asia/Tokyo", "TZ": ":Europe/Berlin"}


def test_a_line_that_is_commented_out_or_under_another_zone_is_told(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", f"{place.bin}:{os.defpath}")
    monkeypatch.setenv("NIGHTLAB_HOME", str(place.home))
    install = ["sweep", "install", str(place.file), "--at", "30 22 * * *"]

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        told = capsys.readouterr()
        assert left.value.code in (0, None), told
        return told.out + told.err

    place.tab.write_bytes(b"CRON_TZ=America/Chicago\nTZ=Asia/Tokyo\n")
    first = json.loads(run(*install, "--json"))["data"]
    assert (
        "CRON_TZ=America/Chicago before this line, another zone than this machine's and Asia/Tokyo"
        in (first["warnings"][0])
    )
    place.tab.write_bytes(place.tab.read_bytes().replace(b"\n30 22", b"\n#30 22"))
    assert "digits is not started: its line in the crontab is commented out" in run("sweep", "list")
    assert "its line was commented out; it is in force again" in run(*install)
    assert place.tab.read_bytes().count(b"# nightlab sweep digits") == 1
    assert "is started next at" in run("sweep", "list")
    place.tab.write_bytes(place.tab.read_bytes().replace(b"\n30 22", b"\n# 30 22"))
    assert "that one is taken away too" in run("sweep", "uninstall", "digits")
    assert place.tab.read_bytes() == b"CRON_TZ=America/Chicago\nTZ=Asia/Tokyo\n"


def test_percent_and_quotes_survive_cron_and_the_shell(tmp_path: Path) -> None:
    """Debian's cron takes a backslash away before a percent sign and nowhere else."""
    argument = 'it\'s 100% \\%d "x" $HOME'
    line = line_of("@daily", ["/usr/bin/printf", "%s", argument], mark_of("sweep x", tmp_path))
    command = line.removeprefix("@daily ").replace("\\%", "%")
    assert subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True, text=True).stdout == argument


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_itself_takes_the_units_and_starts_when_cron_does(tmp_path: Path) -> None:
    for expression in ("30 22 * * 1-5", "*/20 1-3 1,15 feb *", "0 0 1 * mon", "0 0 */2 * 7"):
        for line in calendar_lines(expression):
            subprocess.run(["systemd-analyze", "calendar", line], check=True, capture_output=True)
    argv = [sys.executable, "-c", 'it\'s 100% $HOME "x"']
    units = sweep_units("nightlab-s", "s", "0 0 1 * mon", argv) | service_unit(
        "nightlab-r", argv, Path("/a%b"), path="/a b:/bin"
    )
    for name, text in units.items():
        (tmp_path / name).write_text(text)
    names = [str(tmp_path / name) for name in units]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True)
    assert "nightlab" not in done.stderr, done.stderr


@pytest.fixture
def real_cron() -> Iterator[None]:
    """Debian's cron daemon, and this user's crontab as it was."""
    if os.getuid() != 0 or shutil.which("cron") is None or shutil.which("crontab") is None:
        pytest.skip("needs root and Debian's cron")
    with open("/tmp/crontab.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = subprocess.run(["crontab", "-l"], capture_output=True, check=False)
        daemon = subprocess.Popen(["cron", "-f"], stdin=subprocess.DEVNULL)
        try:
            yield
        finally:
            daemon.terminate()
            daemon.wait(10)
            if before.returncode == 0:
                subprocess.run(["crontab", "-"], input=before.stdout, check=True)
            else:
                subprocess.run(["crontab", "-r"], check=False)


@pytest.mark.acceptance
@pytest.mark.usefixtures("real_cron")
def test_debians_cron_starts_an_installed_line_in_its_empty_environment(tmp_path: Path) -> None:
    """The interpreter of the line is a script that notes what it was given by cron, then does what the line says."""
    home, seen = tmp_path / "my home's 100%", tmp_path / "seen"
    sweep = tmp_path / "a folder" / "sweep.yaml"
    sweep.parent.mkdir()
    sweep.write_text(SWEEP.format(name="cron-test"))
    done = nightlab("sweep", "install", str(sweep), "--at", "* * * * *", "--json", "--home", str(home))
    assert done.exit_code == 0, done.out
    note = tmp_path / "python"
    note.write_text(f'#!/bin/sh\n{{ env; pwd; echo "$@"; }} > {seen}.part; mv {seen}.part {seen}\n')
    note.chmod(0o755)
    record = home / "sweeps" / "cron-test.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"executable": str(note)}))
    deadline = time.monotonic() + 130
    while not seen.exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    said = seen.read_text()
    assert f"sweep run {sweep} --home {home} --python " in said
    assert f"PATH={os.environ['PATH']}" in said
    assert f"\n{home}\n" in said
    assert "VIRTUAL_ENV" not in said
    assert (home / "sweeps" / "cron-test.starts").exists()
    assert nightlab("sweep", "uninstall", "cron-test", "--home", str(home)).exit_code == 0
