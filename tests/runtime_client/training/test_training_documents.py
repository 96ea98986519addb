"""The scripts of docs/training-scripts.md, as they are: interrupted and resumed they end with the same number."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from training_process import Attempt

PAGE = Path(__file__).resolve().parents[3] / "docs" / "training-scripts.md"
SCRIPTS = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text(), flags=re.DOTALL))
NEEDS = {
    "plain": (),
    "with_torch": ("torch",),
    "with_trainer": ("torch", "transformers", "accelerate"),
    "with_lightning": ("torch", "lightning"),
}
FIRST_SAVE = {"plain": 50, "with_torch": 15, "with_trainer": 8, "with_lightning": 10}


def of_frameworks() -> list[object]:
    return [name if not NEEDS[name] else pytest.param(name, marks=pytest.mark.training) for name in sorted(NEEDS)]


def script(name: str) -> str:
    missing = [module for module in NEEDS[name] if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    return SCRIPTS[name]


def test_every_script_of_the_page_is_tested_and_none_is_missing() -> None:
    assert set(SCRIPTS) == set(NEEDS)


def final(attempt: Attempt, code: str, **more: str) -> tuple[int, str, list[str]]:
    """Exit code, the last number (or what went wrong), the metrics that were logged."""
    attempt.start(code, **more)
    ((status, output, errors),) = attempt.results()
    lines = output.splitlines()
    ends = [line for line in lines if line.startswith("final ")]
    return status, ends[0] if ends else errors, [line for line in lines if line.startswith("step ")]


@pytest.mark.parametrize("name", of_frameworks())
def test_interrupted_twice_it_ends_like_an_undisturbed_run(name: str, tmp_path: Path) -> None:
    code = script(name)
    status, expected, curve = final(Attempt(tmp_path / "undisturbed"), code)
    assert status == 0, expected

    at_once = Attempt(tmp_path, number=1)
    at_once.notice.touch()
    status, said, first = final(at_once, code)
    assert status == 75, said
    assert (at_once.checkpoint_dir / "step-1" / "COMPLETE").exists()

    # The notice of this one is the first checkpoint that it makes by the clock: it leaves at the step after.
    saved = FIRST_SAVE[name]
    notice = str(at_once.checkpoint_dir / f"step-{saved}" / "COMPLETE")
    status, said, second = final(Attempt(tmp_path, number=2), code, NIGHTLAB_PREEMPT_FILE=notice)
    assert status == 75, said
    assert (at_once.checkpoint_dir / f"step-{saved + 1}" / "COMPLETE").exists()

    status, said, third = final(Attempt(tmp_path, number=3), code)
    assert (status, said) == (0, expected)
    assert [*first, *second, *third] == curve
