"""Files of code within so many tokens: whole, or around their definitions; over several turns all of it."""

from __future__ import annotations

from agent.coding.showing import shown
from agent.llm.counting import tokens_of

_BODY = "    # why it is as it is, in words that take room\n" * 4
CODE = "import os\n\n" + "".join(f"@cached\ndef f{n}(x):\n    y = x + {n}\n{_BODY}    return y\n\n" for n in range(30))


def test_what_fits_is_shown_whole_and_line_by_line_as_it_is() -> None:
    found = shown({"b.py": b"x\t= 1\n", "a.py": CODE.encode()}, limit=4_000, turn=3)
    assert found is not None
    assert found.is_whole
    assert CODE.removesuffix("\n") in found.text
    assert found.text.index("file a.py") < found.text.index("x\t= 1")


def test_what_does_not_fit_keeps_its_definitions_and_says_how_many_lines_are_left_out() -> None:
    found = shown({"a.py": CODE.encode()}, limit=1600, turn=0)
    assert found is not None
    assert not found.is_whole
    assert tokens_of(found.text) <= 1600
    assert found.text.count("@cached\ndef ") == 30
    n_out = sum(int(line.split()[1]) for line in found.text.splitlines() if line.startswith("[... "))
    assert n_out + sum(1 for line in found.text.splitlines() if not line.startswith(("[... ", "<", "</"))) == 272


def test_over_several_turns_every_part_is_seen() -> None:
    texts = [shown({"a.py": CODE.encode()}, limit=1600, turn=turn) for turn in range(31)]
    for n in range(30):
        assert any(f"y = x + {n}\n" in one.text for one in texts if one is not None)


def test_a_long_part_is_shown_in_pieces() -> None:
    body = "".join(f"    a{n} = 0\n" for n in range(200))
    found = shown({"a.py": f"def f():\n{body}".encode()}, limit=600, turn=0)
    assert found is not None
    assert "a0 = 0" in found.text
    assert "a190 = 0" not in found.text


def test_where_not_even_the_definitions_fit_there_is_nothing() -> None:
    assert shown({"a.py": CODE.encode()}, limit=500, turn=0) is None


def test_what_is_no_text_is_told_as_such() -> None:
    found = shown({"a.bin": b"\xff\x00"}, limit=500, turn=0)
    assert found is not None
    assert "it can not be edited" in found.text
