"""From spec to argument vector: placeholders, quoting, styles. What a shell makes of it is asked of a real shell."""

from __future__ import annotations

import argparse
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.model.states import ExitReason
from runtime.node.command import parameter_variables, render
from runtime.node.launch_errors import CannotLaunch
from runtime_client.models import JobSpec


def spec(command: str | tuple[str, ...], **fields: Any) -> JobSpec:
    return JobSpec(experiment_name="x", command=command, **fields)


def argv(job: JobSpec) -> tuple[str, ...]:
    places = {"job_id": "j7", "attempt": "2", "checkpoint_dir": "/ck"}
    return render(job, hyperparameters="/a/h.yaml", shell="/bin/sh", places=places).argv


def shell_text(job: JobSpec) -> str:
    shell, option, text = argv(job)
    assert (shell, option) == ("/bin/sh", "-c")
    return text


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python t.py --lr {lr} --seed {seed}", "python t.py --lr 0.001 --seed 5"),
        ("echo {job_id}.{attempt} {checkpoint_dir}", "echo j7.2 /ck"),
        ("echo ${lr} ${HOME}", "echo ${lr} ${HOME}"),
        ("awk '{print $1}' x", "awk '{print $1}' x"),
        ("awk '{print}' x; echo {a,b} {{lr}} {}", "awk '{print}' x; echo {a,b} {{lr}} {}"),
        ("echo {nothing}", "echo {nothing}"),
        ('echo "lr is {lr}"', 'echo "lr is 0.001"'),
    ],
)
def test_only_known_names_in_braces_are_replaced(command: str, expected: str) -> None:
    assert shell_text(spec(command, parameters={"lr": 0.001}, seed=5)) == expected


def test_argument_vectors_are_filled_without_quoting() -> None:
    job = spec(("python", "t.py", "--name={name}", "{job_id}"), parameters={"name": "it's $HOME; rm"})
    assert argv(job) == ("python", "t.py", "--name=it's $HOME; rm", "j7")


def test_seed_placeholder_without_a_seed_is_refused() -> None:
    with pytest.raises(CannotLaunch, match="has no seed") as caught:
        argv(spec("python t.py {seed}"))
    assert caught.value.exit_reason is ExitReason.BAD_COMMAND


@given(value=st.text(alphabet=st.characters(blacklist_characters="\x00", blacklist_categories=("Cs",)), max_size=20))
def test_a_value_is_always_one_word_for_the_shell(value: str) -> None:
    text = shell_text(spec("printf %s {v}", parameters={"v": value}))
    assert subprocess.run(["/bin/sh", "-c", text], capture_output=True, check=True).stdout == value.encode()


@pytest.mark.parametrize("quoted", ['"{v}"', "'{v}'", '"$(echo {v})"', "\"`echo '{v}'`\""])
@pytest.mark.parametrize("value", ["$(touch pwned)", "a;b", "it's", 'say "x"', "a\\", "`id`", "x\ny", "!x", "*"])
def test_special_values_inside_quotes_are_refused_rather_than_run(quoted: str, value: str) -> None:
    with pytest.raises(CannotLaunch, match="without quotes around it"):
        argv(spec(f"echo {quoted}", parameters={"v": value}))


def test_quotes_that_were_closed_do_not_count() -> None:
    text = shell_text(spec("echo 'a' \"b\" \\' {v}", parameters={"v": "c d"}))
    assert subprocess.run(["/bin/sh", "-c", text], capture_output=True, check=True).stdout == b"a b ' c d\n"


def test_argparse_style_is_understood_by_argparse() -> None:
    parameters = {
        "lr": 1e-05,
        "use_bias": True,
        "no_norm": False,
        "nothing": None,
        "layers": [64, 32],
        "offset": -0.5,
        "tag": "-x y",
        "optim": {"name": "adam"},
    }
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    parser.add_argument("--use_bias", action="store_true")
    parser.add_argument("--no_norm", action="store_true")
    parser.add_argument("--layers", type=int, nargs="*")
    parser.add_argument("--offset", type=float)
    parser.add_argument("--tag")
    parser.add_argument("--optim.name")
    parser.add_argument("--seed", type=int)
    words = argv(spec(("t.py",), parameters=parameters, seed=3, args_style="argparse"))
    found = vars(parser.parse_args(list(words[1:])))
    assert found == {
        "lr": 1e-05,
        "use_bias": True,
        "no_norm": False,
        "layers": [64, 32],
        "offset": -0.5,
        "tag": "-x y",
        "optim.name": "adam",
        "seed": 3,
    }


def test_arguments_are_appended_to_shell_text_quoted() -> None:
    job = spec("cd sub && python t.py\n", parameters={"tag": "a b"}, args_style="argparse")
    assert shell_text(job) == "cd sub && python t.py --tag 'a b'"


def test_what_a_placeholder_used_is_not_passed_twice() -> None:
    job = spec("t {lr} {seed}", parameters={"lr": 1, "n": 2}, seed=3, args_style="argparse")
    assert shell_text(job) == "t 1 3 --n 2"


def test_a_parameter_named_seed_wins_over_the_seed() -> None:
    assert argv(spec(("t",), parameters={"seed": 9}, seed=3, args_style="hydra")) == ("t", "seed=9")


def test_hydra_style_keeps_types_and_nesting() -> None:
    parameters = {
        "lr": 0.1,
        "optim": {"name": "adam", "betas": [0.9, 0.999]},
        "flag": True,
        "none": None,
        "text": "1",
        "word": "it's, ok",
        "yes": "true",
        "path": "/data/a.txt",
        "empty": {},
    }
    assert argv(spec(("t",), parameters=parameters, args_style="hydra"))[1:] == (
        "lr=0.1",
        "optim.name=adam",
        "optim.betas=[0.9,0.999]",
        "flag=true",
        "none=null",
        "text='1'",
        "word='it\\'s, ok'",
        "yes='true'",
        "path=/data/a.txt",
        "empty={}",
    )


def test_yaml_style_names_the_file() -> None:
    assert argv(spec(("t",), parameters={"a": 1}, args_style="yaml")) == ("t", "--config", "/a/h.yaml")


def test_env_style_sets_upper_case_variables() -> None:
    job = spec("t", parameters={"lr": 0.1, "optim": {"b-1": True}, "none": None}, seed=4, args_style="env")
    assert parameter_variables(job) == {"LR": "0.1", "OPTIM__B_1": "true", "SEED": "4"}


def test_other_styles_set_no_variables() -> None:
    assert parameter_variables(spec("t", parameters={"lr": 0.1}, args_style="argparse")) == {}
