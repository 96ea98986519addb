"""What a job finds in its environment, and what is checked before it starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from runtime.model.states import ExitReason
from runtime.node import records
from runtime.node.command import Rendered
from runtime.node.environment import (
    AttemptFacts,
    check_command,
    check_folder,
    check_python,
    hyperparameters_yaml,
    job_environment,
)
from runtime.node.launch_errors import CannotLaunch
from runtime_client.models import ArrayTask, CodeSource, Environment, JobSpec

SERVER = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/u",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENAI_API_KEY": "sk-secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "NIGHTLAB_TOKEN": "owner",
    "MLFLOW_TRACKING_PASSWORD": "secret",
    "PYTHONPATH": "/server/code",
    "VIRTUAL_ENV": "/server/venv",
}


def facts(folder: Path, **changes: Any) -> AttemptFacts:
    settings: dict[str, Any] = {
        "job_id": "j1",
        "attempt": 2,
        "folder": folder,
        "working_folder": Path("/my code"),
        "checkpoint_dir": Path("/ck"),
        "resume_from": None,
        "marker": "m",
        "attempt_token": "t",
        "tracking_url": "http://127.0.0.1:7070",
        "devices": (1, 3),
        "is_accelerator": True,
        "uuids": ("GPU-b", "GPU-d"),
        "cores": None,
        "n_ranks": 2,
        **changes,
    }
    return AttemptFacts(**settings)


def environment(tmp_path: Path, spec: JobSpec | None = None, **changes: Any) -> dict[str, str]:
    return job_environment(spec or JobSpec(experiment_name="x", command="t"), facts(tmp_path, **changes), SERVER)


def test_only_listed_variables_of_the_server_are_passed(tmp_path: Path) -> None:
    found = environment(tmp_path)
    passed = {name for name in SERVER if name in found}
    assert passed == {"PATH", "HOME", "LC_ALL", "TZ", "OPENBLAS_CORETYPE"}
    assert not any("secret" in value or "owner" in value for value in found.values())


def test_tells_the_job_about_itself(tmp_path: Path) -> None:
    found = environment(tmp_path, JobSpec(experiment_name="x", command="t", seed=7), resume_from=Path("/ck/step-9"))
    assert found["NIGHTLAB_JOB_ID"] == "j1"
    assert found["NIGHTLAB_ATTEMPT"] == "2"
    assert found["NIGHTLAB_SEED"] == "7"
    assert found["NIGHTLAB_RESUME_FROM"] == "/ck/step-9"
    assert found["NIGHTLAB_PREEMPT_FILE"] == str(tmp_path / records.NOTICE)
    assert found["HYPERPARAMETERS_PATH"] == str(tmp_path / records.HYPERPARAMETERS)
    assert found["MLFLOW_TRACKING_URI"] == "http://127.0.0.1:7070"
    assert found["MLFLOW_TRACKING_TOKEN"] == "t"
    assert found["CUDA_VISIBLE_DEVICES"] == "1,3"
    assert (found["WORLD_SIZE"], found["LOCAL_WORLD_SIZE"]) == ("2", "2")
    assert "MLFLOW_RUN_ID" not in found


def test_links_of_mlflow_that_lead_nowhere_are_not_printed_unless_asked_for(tmp_path: Path) -> None:
    name = "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"
    asked = JobSpec(experiment_name="x", command="t", env_variables={name: "false"})
    assert (environment(tmp_path)[name], environment(tmp_path, asked)[name]) == ("true", "false")


def test_tells_a_task_its_place_in_the_array(tmp_path: Path) -> None:
    task = ArrayTask(array_id="a7", index=12, n_tasks=20)
    spec = JobSpec(experiment_name="x", command="c", array_task=task)
    found = job_environment(spec, facts(tmp_path), SERVER)
    names = ("NIGHTLAB_ARRAY_ID", "NIGHTLAB_ARRAY_INDEX", "NIGHTLAB_ARRAY_SIZE")
    assert [found[name] for name in names] == ["a7", "12", "20"]
    plain = job_environment(JobSpec(experiment_name="x", command="c"), facts(tmp_path), SERVER)
    assert not set(names) & set(plain)


def test_tells_a_job_that_waited_for_others_where_to_find_what_they_left(tmp_path: Path) -> None:
    spec = JobSpec(experiment_name="x", command="c", depends_on=("j3", "a7", "j4"))  # type: ignore[arg-type]
    found = job_environment(spec, facts(tmp_path, checkpoint_dir=Path("/attempts/j9/checkpoints")), SERVER)
    assert found["NIGHTLAB_AFTER_JOBS"] == "j3,j4"
    assert found["NIGHTLAB_AFTER_FOLDERS"] == "/attempts/j3:/attempts/j4"
    alone = environment(tmp_path)
    assert {"NIGHTLAB_AFTER_JOBS", "NIGHTLAB_AFTER_FOLDERS"}.isdisjoint(alone)


def test_nothing_to_resume_no_seed_and_no_code_leave_their_variables_unset(tmp_path: Path) -> None:
    assert {"NIGHTLAB_RESUME_FROM", "NIGHTLAB_SEED", "CODE_SOURCE_PATH"}.isdisjoint(environment(tmp_path))


def test_the_folder_with_the_code_is_named(tmp_path: Path) -> None:
    spec = JobSpec(experiment_name="x", command="cd $CODE_SOURCE_PATH", code_source=CodeSource(root_path="/my code"))
    assert environment(tmp_path, spec)["CODE_SOURCE_PATH"] == "/my code"


def test_cpu_slots_hide_accelerators_and_share_the_cores(tmp_path: Path) -> None:
    found = environment(tmp_path, is_accelerator=False, cores=3)
    assert found["CUDA_VISIBLE_DEVICES"] == ""
    assert found["OMP_NUM_THREADS"] == found["OPENBLAS_NUM_THREADS"] == "3"


def test_the_users_own_variables_win(tmp_path: Path) -> None:
    spec = JobSpec(experiment_name="x", command="t", env_variables={"OMP_NUM_THREADS": "8", "TZ": "CET"})
    found = environment(tmp_path, spec, cores=1)
    assert (found["OMP_NUM_THREADS"], found["TZ"]) == ("8", "CET")


def test_python_of_a_venv_comes_first_and_is_active(tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    spec = JobSpec(experiment_name="x", command="t", environment=Environment(python=str(python)))
    found = environment(tmp_path, spec)
    assert found["PATH"].split(":")[0] == str(python.parent)
    assert found["VIRTUAL_ENV"] == str(tmp_path / "venv")


def test_python_with_a_version_in_its_name_is_what_python_means(tmp_path: Path) -> None:
    python = tmp_path / "opt" / "python3.11"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    spec = JobSpec(experiment_name="x", command="t", environment=Environment(python=str(python)))
    found = environment(tmp_path, spec)
    assert os.path.realpath(Path(found["PATH"].split(":")[0]) / "python") == os.path.realpath(sys.executable)


@pytest.mark.parametrize(
    ("python", "words"),
    [
        ("/no/such/python", "does not exist"),
        ("bin/python", "not an absolute path"),
        ("/usr", "is a folder; its interpreter would be /usr/bin/python"),
        ("/etc/passwd", "may not be executed"),
    ],
)
def test_a_python_that_can_not_be_run_says_what_to_do(python: str, words: str) -> None:
    with pytest.raises(CannotLaunch, match=words) as caught:
        check_python(Path(python))
    assert caught.value.exit_reason is ExitReason.BAD_PYTHON
    assert repr(python) in caught.value.evidence
    assert "command -v python3" in caught.value.evidence


@pytest.mark.parametrize(("folder", "words"), [("/no/where", "does not exist"), ("/etc/passwd", "is not a folder")])
def test_a_working_directory_that_is_none_is_refused(folder: str, words: str) -> None:
    with pytest.raises(CannotLaunch, match=words) as caught:
        check_folder(Path(folder))
    assert caught.value.exit_reason is ExitReason.BAD_COMMAND


def test_programs_of_argument_vectors_must_exist(tmp_path: Path) -> None:
    path = {"PATH": "/usr/bin:/bin"}
    check_command(Rendered(argv=("env",), is_shell=False), tmp_path, path)
    with pytest.raises(CannotLaunch, match=r"'no-such-program'.*not on PATH"):
        check_command(Rendered(argv=("no-such-program",), is_shell=False), tmp_path, path)
    (tmp_path / "run.sh").touch(mode=0o644)
    with pytest.raises(CannotLaunch, match="executable"):
        check_command(Rendered(argv=("./run.sh",), is_shell=False), tmp_path, path)
    (tmp_path / "run.sh").chmod(0o755)
    check_command(Rendered(argv=("./run.sh",), is_shell=False), tmp_path, path)


def test_hyperparameters_keep_their_nesting_and_order() -> None:
    spec = JobSpec(experiment_name="x", command="t", parameters={"z": {"b": [1, 2.5], "a": None}, "é": "ü"}, seed=3)
    text = hyperparameters_yaml(spec)
    assert yaml.safe_load(text) == {"z": {"b": [1, 2.5], "a": None}, "é": "ü", "seed": 3}
    assert text.index("z:") < text.index("é:") < text.index("seed:")


def test_tells_which_devices_it_has_by_index_and_by_uuid(tmp_path: Path) -> None:
    found = environment(tmp_path)
    assert (found["CUDA_DEVICE_ORDER"], found["CUDA_VISIBLE_DEVICES"]) == ("PCI_BUS_ID", "1,3")
    assert found["NIGHTLAB_DEVICE_UUIDS"] == "GPU-b,GPU-d"
    slots = environment(tmp_path, is_accelerator=False, uuids=("cpu-1", "cpu-3"))
    assert (slots["CUDA_VISIBLE_DEVICES"], "NIGHTLAB_DEVICE_UUIDS" in slots) == ("", False)


def test_tells_a_gang_its_place(tmp_path: Path) -> None:
    found = environment(tmp_path, n_ranks=4, node_rank=1, n_nodes=2, master_addr="10.0.0.1")
    assert [found[name] for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "NUM_NODES", "MASTER_ADDR")] == [
        "4",
        "2",
        "1",
        "2",
        "10.0.0.1",
    ]
