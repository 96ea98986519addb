"""Flags and workload files become specs, or sentences that say what to change."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from nightlab.commands.job_run import ArgsStyleOption, Asked, OnTimeoutOption, PriorityClass, minutes, spec_of
from nightlab.failure import ExitCode, Failure
from nightlab.foreign_workload import made_ours
from nightlab.workload import read_workload, scalar
from runtime.scheduling.policy import Policy
from runtime_client.models import ArgsStyle, ArraySpec, OnTimeout

NOTHING = Asked(
    command=(),
    n_devices=None,
    accelerator_type=None,
    run_name=None,
    experiment=None,
    priority=None,
    params=(),
    seed=None,
    args_style=None,
    env=(),
    python=None,
    cwd=None,
    snapshot=None,
    timeout=None,
    file=None,
    overrides=(),
    idempotency_key=None,
)
TRAIN = replace(NOTHING, command=("python", "train.py", "--lr", "3e-4"))


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An active virtual environment, so that no test looks for a Python on PATH."""
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to("/bin/true")
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))


def written(folder: Path, text: str) -> Asked:
    file = folder / "workload.yaml"
    file.write_text(text)
    return replace(NOTHING, file=file)


def refusal(asked: Asked) -> Failure:
    with pytest.raises(Failure) as caught:
        spec_of(asked)
    assert caught.value.exit_code == ExitCode.WRONG_USE
    return caught.value


def test_a_bare_command_runs_here_in_the_active_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "my digits!"
    here.mkdir()
    monkeypatch.chdir(here)
    spec = spec_of(TRAIN)
    assert spec.command == ("python", "train.py", "--lr", "3e-4")
    assert spec.environment.python == str(tmp_path / ".venv" / "bin" / "python")
    assert spec.code_source is not None
    assert spec.code_source.root_path == str(here)
    assert spec.experiment_name == "my-digits-"
    assert spec.compute.num_accelerators == 1


def test_one_word_with_spaces_is_given_to_the_shell() -> None:
    assert spec_of(replace(NOTHING, command=("echo a && echo b",))).command == "echo a && echo b"


def test_no_command_and_no_file_is_refused() -> None:
    assert refusal(NOTHING).code == "no_command"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-3", 1e-3),
        ("true", True),
        ("null", None),
        ("adam", "adam"),
        ("[1, 2]", [1, 2]),
        ("[1,", "[1,"),
        ("inf", "inf"),
        ("-NaN", "-NaN"),
    ],
)
def test_values_of_flags_are_read_as_a_person_means_them(text: str, value: object) -> None:
    assert scalar(text) == value


def test_parameters_may_be_nested_by_dots() -> None:
    spec = spec_of(replace(TRAIN, params=("optim.lr=1e-3", "optim.name=adam", "layers=2")))
    assert spec.parameters == {"optim": {"lr": 1e-3, "name": "adam"}, "layers": 2}


def test_a_parameter_without_value_is_refused() -> None:
    assert "NAME=VALUE" in refusal(replace(TRAIN, params=("lr",))).message


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    asked = written(tmp_path, "experiment_name: a\ncommand: python t.py\ncompute: {num_accelerators: 4}\nseed: 1\n")
    spec = spec_of(replace(asked, n_devices=2, seed=7, overrides=("max_retries=3",)))
    assert (spec.compute.num_accelerators, spec.seed, spec.max_retries) == (2, 7, 3)
    assert spec.experiment_name == "a"


def test_the_file_s_folder_is_the_code_unless_it_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    bare = spec_of(written(tmp_path, "experiment_name: a\ncommand: python t.py\n"))
    assert bare.code_source is not None
    assert bare.code_source.root_path == str(tmp_path)
    named = spec_of(written(tmp_path, "experiment_name: a\ncommand: c\ncode_source: {root_path: src}\n"))
    assert named.code_source is not None
    assert named.code_source.root_path == str(tmp_path / "src")


def test_unknown_keys_are_named_with_path_and_suggestion(tmp_path: Path) -> None:
    message = refusal(written(tmp_path, "experiment_name: a\ncommand: c\ncompute: {num_acelerators: 2}\n")).message
    assert "compute.num_acelerators: unknown key; did you mean 'num_accelerators'?" in message


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    message = refusal(written(tmp_path, "experiment_name: a b\ncommand: ''\nseed: -1\n")).message
    assert all(name in message for name in ("experiment_name", "command", "seed", "-1"))


def test_an_override_of_no_field_is_refused() -> None:
    assert "unknown key" in refusal(replace(TRAIN, overrides=("sed=1",))).message


@pytest.mark.parametrize(
    ("text", "part"),
    [("a: [1,", "no valid YAML: line"), ("", "is empty"), ("- a\n", "holds a list"), ("a: 1\na: 2\n", "given twice")],
)
def test_files_that_are_no_workload_are_refused(tmp_path: Path, text: str, part: str) -> None:
    assert part in refusal(written(tmp_path, text)).message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="can not be read: No such file"):
        read_workload(tmp_path / "none.yaml")


def test_a_python_that_does_not_exist_is_refused() -> None:
    failure = refusal(replace(TRAIN, python="/no/such/python"))
    assert failure.path == "environment.python"
    assert "/no/such/python does not exist" in failure.message


@pytest.mark.parametrize(("text", "wanted"), [("90", 90.0), ("90s", 1.5), ("30m", 30.0), ("2h", 120.0), ("1d", 1440.0)])
def test_lengths_of_time_are_understood(text: str, wanted: float) -> None:
    assert minutes(text) == wanted


@pytest.mark.parametrize("text", ["", "m", "-1", "0", "nan", "inf", "1w", "soon"])
def test_other_lengths_of_time_are_refused(text: str) -> None:
    with pytest.raises(Failure, match="90s, 30m, 2h"):
        minutes(text)


def test_a_foreign_workload_file_loads_with_warnings() -> None:
    fields, warnings = made_ours(
        {
            "experiment_name": "a",
            "command": "torchrun t.py",
            "compute": {
                "num_accelerators": 8,
                "accelerator_type": "GPU_8xH100",
                "pool_id": "p",
                "priority_class": "CRITICAL",
            },
            "code_source": {"type": "snapshot", "snapshot": {"root_path": ".", "git": {"branch": "main"}}},
            "environment": {"version": "6", "dependencies": ["einops"]},
            "secrets": {"HF_TOKEN": "scope/key"},
            "max_retries": 2,
            "timeout_minutes": 60,
        }
    )
    assert fields["priority_class"] == "CRITICAL"
    assert fields["compute"] == {"num_accelerators": 8, "accelerator_type": "GPU_8xH100"}
    assert fields["code_source"] == {"root_path": ".", "snapshot": "auto"}
    assert fields["environment"] == {}
    assert [warning.partition(" ")[0] for warning in warnings] == [
        "secrets", "compute.pool_id", "environment.version", "environment.dependencies", "code_source.snapshot.git",
    ]  # fmt: skip


def test_a_foreign_workload_file_makes_a_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "experiment_name: a\ncommand: torchrun t.py\n"
        "compute: {num_accelerators: 8, accelerator_type: GPU_8xH100, priority_class: BEST_EFFORT}\n"
        "environment: {version: 6}\n"
    )
    assert spec_of(written(tmp_path, text)).priority_class == "exploratory"
    assert "environment.version is ignored" in capsys.readouterr().err


def test_choices_of_flags_are_those_of_the_contract() -> None:
    assert [style.value for style in ArgsStyleOption] == [style.value for style in ArgsStyle]
    assert {one.value for one in PriorityClass} == set(Policy().classes)
    assert [one.value for one in OnTimeoutOption] == [one.value for one in OnTimeout]


def test_a_job_that_resumes_needs_a_limit_after_which_it_does() -> None:
    assert "needs timeout_minutes" in refusal(replace(TRAIN, on_timeout="resume")).message
    spec = spec_of(replace(TRAIN, on_timeout="resume", timeout="2h", max_total="1d"))
    assert (spec.on_timeout, spec.timeout_minutes, spec.max_total_minutes) == (OnTimeout.RESUME, 120.0, 1440.0)
    assert "--max-total 'x'" in refusal(replace(TRAIN, max_total="x")).message


def test_an_hour_and_a_job_to_go_on_from_are_taken_from_the_flags() -> None:
    before = time.time()
    spec = spec_of(replace(TRAIN, finish_by="+2h", continues="j12"))
    assert spec.finish_by is not None
    assert before <= spec.finish_by - 7200.0 <= time.time()
    assert spec.continues == "j12"
    assert "--finish-by 'x' is no time" in refusal(replace(TRAIN, finish_by="x")).message


def test_arrays_and_what_comes_first_are_flags_and_fields(tmp_path: Path) -> None:
    spec = spec_of(replace(TRAIN, array="0-9", parallel=3, after=("j1", "a7=any")))
    assert spec.array == ArraySpec(indexes="0-9", parallel=3)
    assert [(one.job, one.condition.value) for one in spec.depends_on] == [("j1", "ok"), ("a7", "any")]
    text = "experiment_name: a\ncommand: c\ndepends_on: {j1: not_ok}\narray: {parameters: [{lr: 1}, {lr: 2}]}\n"
    read = spec_of(written(tmp_path, text))
    assert [(one.job, one.condition.value) for one in read.depends_on] == [("j1", "not_ok")]
    assert read.array is not None
    assert len(read.array.tasks) == 2
    assert "write 0-99" in refusal(replace(TRAIN, array="x")).message
    assert "j1=well" not in refusal(replace(TRAIN, after=("j1=well",))).message
    assert "'ok', 'any' or 'not_ok'" in refusal(replace(TRAIN, after=("j1=well",))).message


def test_numbers_of_a_file_with_an_exponent_are_numbers(tmp_path: Path) -> None:
    asked = written(tmp_path, "experiment_name: a\ncommand: c\nparameters: {a: 3e-4, b: .5e1, c: 3e, d: '3e-4'}\n")
    assert spec_of(asked).parameters == {"a": 3e-4, "b": 5.0, "c": "3e", "d": "3e-4"}


def test_a_file_that_contains_itself_is_refused(tmp_path: Path) -> None:
    asked = written(tmp_path, "experiment_name: a\ncommand: c\nparameters: &p {q: *p}\n")
    assert "contains itself" in refusal(asked).message
