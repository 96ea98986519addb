"""The worked examples of the pages print what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest
from worked_examples import Example, examples_of, replay

pytestmark = pytest.mark.cli

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
EXAMPLES = examples_of(DOCS / "scheduling.md")


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_an_example_prints_what_the_page_says(
    example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLAB_HOME", str(tmp_path))
    shown, real = replay(example, tmp_path, capsys)
    assert real == shown
