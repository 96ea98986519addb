"""Edits as text: both forms of blocks, unified diffs, and everything that is refused."""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.edits import EditRules, NotApplied, apply

RULES = EditRules(editable=("model.py", "models/**", "*.txt"), private=("models/secret.py",))
MODEL = b"import math\n\ndef net(x):\n\ty = x * 2\n\treturn y\n\ndef loss(x):\n    return x\n"
SOURCES = {"model.py": MODEL, "models/net.py": b"a = 1\nb = 2\nb = 2\n"}


def ours(path: str, old: str, new: str) -> str:
    return f"<<<< edit {path}\n{old}==== with\n{new}>>>> end\n"


def common(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def only(text: str, source: bytes) -> bytes:
    """The one file, edited."""
    return apply(text, {"model.py": source}, RULES)["model.py"]


@pytest.mark.parametrize("form", [ours, common])
def test_a_block_changes_what_it_names(form):
    changed = apply(form("model.py", "    return x\n", "    return x + 1\n"), SOURCES, RULES)
    assert changed == {"model.py": MODEL.replace(b"    return x\n", b"    return x + 1\n")}


@pytest.mark.parametrize("form", [ours, common])
def test_words_and_fences_around_blocks_are_no_part_of_them(form):
    block = form("model.py", "def loss(x):\n", "def loss(x, y=0):\n")
    text = f"I would widen the loss - like so:\n\n```python\n{block}```\n\n- This gives a term.\n"
    assert b"loss(x, y=0)" in apply(text, SOURCES, RULES)["model.py"]


def test_the_path_of_a_common_block_may_stand_before_its_fence():
    block = "**`model.py`**:\n\n```python\n<<<<<<< SEARCH\nimport math\n=======\nimport cmath\n>>>>>>> REPLACE\n```\n"
    assert apply(block, SOURCES, RULES)["model.py"].startswith(b"import cmath\n")


def test_a_block_that_follows_another_is_of_the_same_file():
    second = "<<<<<<< SEARCH\n    return x\n=======\n    return -x\n>>>>>>> REPLACE\n"
    text = common("model.py", "import math\n", "import cmath\n") + "```\n\n```python\n" + second
    assert apply(text, SOURCES, RULES)["model.py"] == MODEL.replace(b"math", b"cmath").replace(b"urn x\n", b"urn -x\n")


def test_with_one_editable_file_no_block_needs_a_path():
    assert only("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", b"a\n") == b"b\n"


@pytest.mark.parametrize(
    "text",
    [
        "<<<< new models/extra.py\nx = 1\n>>>> end\n",
        common("models/extra.py", "", "x = 1\n"),
        "--- /dev/null\n+++ b/models/extra.py\n@@ -0,0 +1 @@\n+x = 1\n",
        "diff --git a/models/extra.py b/models/extra.py\nnew file mode 100644\nindex 0000000..1234567\n"
        "--- /dev/null\n+++ b/models/extra.py\n@@ -0,0 +1 @@\n+x = 1\n",
    ],
)
def test_a_new_file_in_each_form(text):
    assert apply(text, SOURCES, RULES) == {"models/extra.py": b"x = 1\n"}


def test_our_form_holds_lines_that_look_like_the_markers_of_the_common_one():
    source = b"Title\n=======\n"
    assert only(ours("model.py", "Title\n=======\n", "<<<<<<< SEARCH\n"), source) == b"<<<<<<< SEARCH\n"


DIFF = (
    "--- {a}model.py\n+++ {b}model.py\n@@ -{line},4 +{line},5 @@\n \treturn y\n \n-def loss(x):\n+def loss(x, y):\n"
    "+    x = x + y\n     return x\n"
)


@pytest.mark.parametrize("line", [5, 1, 700])
@pytest.mark.parametrize(("a", "b"), [("a/", "b/"), ("", "")])
def test_a_diff_applies_wherever_its_line_numbers_point(a, b, line):
    expected = MODEL.replace(b"def loss(x):\n", b"def loss(x, y):\n    x = x + y\n")
    assert apply(DIFF.format(a=a, b=b, line=line), SOURCES, RULES) == {"model.py": expected}


@pytest.mark.parametrize(
    "head", ["@@ -5,4 +5,5 @@ def net(x):", "@@ -5,44 +5,55 @@", "@@ -5 +5 @@", "@@ @@", "@@ ... @@"]
)
def test_a_diff_whose_counts_are_wrong_is_read_by_its_signs(head):
    text = DIFF.format(a="a/", b="b/", line=5).replace("@@ -5,4 +5,5 @@", head)
    assert b"loss(x, y)" in apply(f"Here:\n```diff\n{text}```\nDone - it is better.\n", SOURCES, RULES)["model.py"]


def test_a_mail_of_git_format_patch():
    text = "From 123\nSubject: x\n\n---\n model.py | 2 +-\n\n" + DIFF.format(a="a/", b="b/", line=5) + "-- \n2.39.5\n"
    assert b"loss(x, y)" in apply(text, SOURCES, RULES)["model.py"]


def test_right_line_numbers_tell_equal_places_apart_and_wrong_ones_do_not():
    diff = "--- models/net.py\n+++ models/net.py\n@@ -{0} +{0} @@\n-b = 2\n+b = 3\n"
    assert apply(diff.format(3), SOURCES, RULES) == {"models/net.py": b"a = 1\nb = 2\nb = 3\n"}
    with pytest.raises(NotApplied, match=r"2 times in the file \(lines 2, 3\)"):
        apply(diff.format(9), SOURCES, RULES)


def test_spots_are_looked_for_in_the_file_as_it_is():
    text = ours("model.py", "a\n", "b\n") + ours("model.py", "b\n", "c\n")
    assert only(text, b"a\nb\n") == b"b\nc\n"


def test_an_edit_of_one_line_end_takes_those_of_the_file():
    source = b"a\r\nb\r\n"
    assert only(ours("model.py", "a\n", "x\ny\n"), source) == b"x\r\ny\r\nb\r\n"
    assert only(ours("model.py", "a\n", "x\n").replace("\n", "\r\n"), b"a\nb\n") == b"x\nb\n"


def test_in_a_file_of_mixed_line_ends_they_have_to_be_right():
    source = b"a\r\nb\n"
    assert only(ours("model.py", "a\r\n", "x\r\n"), source) == b"x\r\nb\n"
    with pytest.raises(NotApplied, match="line ends alone"):
        only(ours("model.py", "a\n", "x\n"), source)


def test_a_file_without_final_newline_stays_so_unless_a_diff_says_otherwise():
    diff = "--- model.py\n+++ model.py\n@@ -1,2 +1,2 @@\n a\n-b\n{}+c\n{}"
    sign = "\\ No newline at end of file\n"
    assert only(ours("model.py", "b\n", "c\n"), b"a\nb") == b"a\nc"
    assert only(diff.format("", ""), b"a\nb") == b"a\nc"
    assert only(diff.format(sign, ""), b"a\nb") == b"a\nc\n"
    assert only(diff.format("", sign), b"a\nb\n") == b"a\nc"


def test_the_end_of_a_file_without_newline_is_one_place():
    diff = "--- model.py\n+++ model.py\n@@ -1 +1 @@\n-b\n\\ No newline at end of file\n+c\n"
    assert only(diff, b"b\n" * 9 + b"b") == b"b\n" * 9 + b"c\n"


def test_an_edit_may_be_large_and_monotonous():
    lines = "\n" * 1_000_000
    with pytest.raises(NotApplied, match="many times in the file"):
        only(ours("model.py", lines, "x\n"), b"\n" * 2_000_000)
    with pytest.raises(NotApplied, match="no line of the file is like"):
        only(ours("model.py", "x" * 4_000_000 + "\n", "x\n"), b"y" * 4_000_000 + b"\n")


REFUSED = {
    "nothing in it": ("just words", "no edit in this text"),
    "ambiguous": (ours("models/net.py", "b = 2\n", "b = 3\n"), r"2 times in the file \(lines 2, 3\)"),
    "spaces for a tab": (
        ours("model.py", "    y = x * 2\n", "y\n"),
        r"line 4 of the file is '\\ty = x \* 2'; they diff",
    ),
    "another line": (
        ours("model.py", "def loss(x):\n    return x*1\n", "y\n"),
        r"block 1: not found: the edit expects '    return x\*1', and line 8 of the file is '    return x'",
    ),
    "a like line": (ours("model.py", "def nett(x):\n", "y\n"), "line 3 of the file is 'def net"),
    "no like line": (ours("model.py", "0123456789\n", "y\n"), "no line of the file is like"),
    "past the end": (ours("model.py", "    return x\nq\n", "y\n"), "the file ends before line 9"),
    "both sides equal": (ours("model.py", "import math\n", "import math\n"), "two sides are the same"),
    "changes nothing": (
        "--- model.py\n+++ model.py\n@@ -1 +1 @@\n-import math\n+import math\n",
        "changes nothing",
    ),
    "overlapping": (
        ours("model.py", "import math\n\n", "x\n") + ours("model.py", "\ndef net(x):\n", "y\n"),
        "block 1 and block 2 change the same lines",
    ),
    "not whole": ("<<<< edit model.py\nimport math\n==== with\n", "not whole"),
    "not divided": ("<<<< edit model.py\nimport math\n>>>> end\n", "has no line `==== with`"),
    "common not whole": ("model.py\n<<<<<<< SEARCH\nimport math\n=======\n", "not whole"),
    "common not divided": ("model.py\n<<<<<<< SEARCH\nimport math\n>>>>>>> REPLACE\n", "has no line `=======`"),
    "two dividers": (common("model.py", "a\n=======\n", "b\n"), "two lines `=======`"),
    "no path": ("<<<<<<< SEARCH\nimport math\n=======\nx\n>>>>>>> REPLACE\n", "names no file"),
    "words for a path": (
        common("model.py", "import math\n", "x\n") + "and in net.py we do\n" + common("", "a = 1\n", "a = 2\n"),
        "block 2 names no file",
    ),
    "new but there": ("<<<< new model.py\nx\n>>>> end\n", "there already"),
    "made twice": ("<<<< new a.txt\nx\n>>>> end\n<<<< new a.txt\ny\n>>>> end\n", "made by an earlier block"),
    "not there": (ours("models/other.py", "x\n", "y\n"), "no file models/other.py; there are: model.py, models/net.py"),
    "no old lines": (ours("model.py", "", "y\n"), "no line that says where"),
    "not editable": (ours("train.py", "x\n", "y\n"), r"train.py may not be edited; editable: model.py, models/\*\*"),
    "private": (ours("models/secret.py", "x\n", "y\n"), "may not be edited"),
    "absolute": (ours("/etc/passwd", "x\n", "y\n"), "no path below the code's folder"),
    "above": (ours("models/../../x.py", "x\n", "y\n"), r"leave out `\.`"),
    "a drive": (ours("C:/x.py", "x\n", "y\n"), "no path below"),
    "backslashes": (ours("models\\net.py", "x\n", "y\n"), "no path below"),
    "below .git": (ours("models/.git/config", "x\n", "y\n"), "may not be edited"),
    "above by a diff": ("--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", "leave out"),
    "deleted": ("--- a/model.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import math\n", "can not be deleted"),
    "deleted by git": ("diff --git a/model.py b/model.py\ndeleted file mode 100644\n", "can not be deleted"),
    "renamed by git": (
        "diff --git a/model.py b/models/m.py\nsimilarity index 100%\nrename from model.py\nrename to models/m.py\n",
        "can not be renamed",
    ),
    "renamed": ("--- a/model.py\n+++ b/models/net.py\n@@ -1 +1 @@\n-import math\n+x\n", "two files"),
    "a link": ("diff --git a/x.txt b/x.txt\nnew file mode 120000\n--- /dev/null\n+++ b/x.txt\n", "no link"),
    "a mode": ("diff --git a/model.py b/model.py\nold mode 100644\nnew mode 100755\n", "mode of a file"),
    "binary": ("diff --git a/model.py b/model.py\nindex 1..2 100644\nGIT binary patch\n", "binary files"),
    "new by a diff but there": ("--- /dev/null\n+++ b/model.py\n@@ -0,0 +1 @@\n+x\n", "there already"),
    "no hunk": ("--- a/model.py\n+++ b/model.py\n\n@@\n", "no hunk"),
    "no context": ("--- a/model.py\n+++ b/model.py\n@@ -3,0 +4 @@\n+x\n", "no line that says where"),
    "a bad head": ("--- a/model.py\n+++ b/model.py\n@@ def net @@\n-import math\n+x\n", "no head of a hunk"),
    "no sign": (
        "--- a/model.py\n+++ b/model.py\n@@ -1,2 +1,2 @@\n-import math\n+import cmath\ndef net(x):\n",
        "begins with none of space",
    ),
    "only context": ("--- a/model.py\n+++ b/model.py\n@@ -1,1 +1,1 @@\n import math\n", "neither . nor - lines"),
    "two parts": (2 * "--- a/model.py\n+++ b/model.py\n@@ -1 +1 @@\n-import math\n+x\n", "two parts for model.py"),
    "a newline at the end": (
        "--- a/model.py\n+++ b/model.py\n@@ -8 +8 @@\n-    return x\n\\ No newline at end of file\n+    return 1\n",
        "the file ends with a newline",
    ),
    "a fence within": (ours("model.py", "```python\nimport math\n```\n", "x\n"), "leave out fences within a block"),
    "too many blocks": (ours("model.py", "import math\n", "x\n") * 501, "more than 500 blocks"),
    "too many hunks": ("--- a/model.py\n+++ b/model.py\n" + "@@\n-import math\n+x\n" * 501, "more than 500 hunks"),
    "a long path": (ours("x" * 1001, "x\n", "y\n"), "a path of 1001 characters"),
    "a long name": (ours("x" * 201, "x\n", "y\n"), "a part that no file can be called by"),
    "a quoted newline": ('--- "a/x\\n.txt"\n+++ "b/x\\n.txt"\n@@ -1 +1 @@\n-a\n+b\n', "no path below"),
    "much that is wrong": (ours("model.py", "q\n", "r\n") * 20, "block 9 and what follows it were not looked for"),
    "NUL": (ours("model.py", "a\0\n", "y\n"), "NUL bytes"),
    "no text": (ours("model.py", "\ud800\n", "y\n"), "is no text"),
    "too large": ("x" * 10_000_001, "over 10 MB"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_what_to_do(name):
    text, why = REFUSED[name]
    with pytest.raises(NotApplied, match=why):
        apply(text, SOURCES, RULES)


@pytest.mark.parametrize(
    ("source", "why"),
    [(b"a\0\n", "binary"), (b"\xe9\n", r"not UTF-8 \(byte 1\)"), (b"x" * 10_000_001, "over 10 MB")],
)
def test_files_that_are_no_text_are_refused(source, why):
    with pytest.raises(NotApplied, match=why):
        only(ours("model.py", "a\n", "b\n"), source)


def test_every_block_that_does_not_fit_is_told():
    text = ours("model.py", "q\n", "r\n") + ours("models/net.py", "b = 2\n", "b\n") + ours("train.py", "x\n", "y\n")
    with pytest.raises(NotApplied) as refusal:
        apply(text, SOURCES, RULES)
    assert len(str(refusal.value).splitlines()) == 3


LINES = st.lists(
    st.sampled_from(["a", "b", "\tc", "  d", "", "-- x", "++ y", "@@ z", "a\r", "\r", "=", "é", "\x0c", "```"])
)
TEXTS = st.builds(lambda lines, is_bare: ("\n".join(lines) + ("" if is_bare else "\n")).encode(), LINES, st.booleans())


def git_diff(before: bytes, after: bytes) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, content in (("a", before), ("b", after)):
            (folder / side).mkdir()
            (folder / side / "model.py").write_bytes(content)
        words = ["git", "-c", "core.autocrlf=false", "diff", "--no-index", "--no-prefix", "--no-color", "a", "b"]
        return subprocess.run(words, cwd=folder, capture_output=True, check=False).stdout.decode()


@settings(max_examples=150, deadline=None)
@given(TEXTS, TEXTS)
def test_a_diff_of_git_gives_exactly_the_other_side(before, after):
    if before == after:
        return
    diff = git_diff(before, after)
    if not before or not after:  # Git has no hunk for nothing, or calls it made or deleted: another rule.
        return
    assert only(diff, before) == after


@settings(max_examples=300, deadline=None)
@given(LINES, LINES, LINES, LINES, st.booleans(), st.sampled_from([ours, common]))
def test_a_block_gives_exactly_the_other_side(head, old, new, tail, is_bare, form):
    before = "\n".join([*head, "<here>", *old, *tail, "z"]) + ("" if is_bare else "\n")
    after = "\n".join([*head, "<there>", *new, *tail, "z"]) + ("" if is_bare else "\n")
    sides = ["".join(f"{line}\n" for line in lines) for lines in (["<here>", *old], ["<there>", *new])]
    assert only(form("model.py", *sides), before.encode()) == after.encode()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400), st.dictionaries(st.sampled_from(["model.py", "a.txt"]), st.binary(max_size=60)))
def test_any_text_is_applied_or_refused(text: str, sources: Mapping[str, bytes]):
    for begun in ("", "<<<< edit model.py\n", "--- a/model.py\n+++ b/model.py\n@@"):
        try:
            changed = apply(begun + text, sources, RULES)
        except NotApplied:
            continue
        assert changed
