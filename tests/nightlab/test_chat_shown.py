"""What the terminal shows of a chat: inert text, plots, questions and their answers, what can follow what was typed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from agent.chat.entry import (
    AnswerPart,
    AskPart,
    CallPart,
    Cite,
    Content,
    Entry,
    EntryKind,
    NothingPart,
    Plot,
    ReplyPart,
    ResultPart,
    Series,
    Table,
    TroublePart,
    Verdict,
    Victim,
)
from agent.web.chat_wire import SlashView, TextPiece
from nightlab.chat.plot import plotted
from nightlab.chat.questions import Decision, decision
from nightlab.chat.screen import Screen
from nightlab.chat.shown import N_ROWS, shown
from nightlab.chat.words import Ids, words
from nightlab.chat.writing import Writing

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb\u2066c\r\x08d\x00"
SLASHES = (
    SlashView(name="curve", usage="/curve ID [METRIC]", summary="a curve"),
    SlashView(name="explain", usage="/explain JOB", summary="why a job waits"),
    SlashView(name="sessions", usage="/sessions", summary="the newest sessions"),
    SlashView(name="stop", usage="/stop [SESSION]", summary="stop a session"),
)


def entry(kind: EntryKind, part: Content, text: str = "", *, number: int = 1, by: str = "ann") -> Entry:
    ends = kind in (EntryKind.TROUBLE, EntryKind.STOPPED)
    content = part.model_dump(mode="json")
    return Entry(number=number, at=0.0, kind=kind, by=by, text=text, ends_turn=ends, content=content)


def ask(**given: object) -> Entry:
    part = {"call_id": "1", "tool": "stop_session", "arguments": {}, "why": "it ends work", "expires_at": 700.0}
    return entry(EntryKind.ASK, AskPart.model_validate(part | given), "stop session s1", number=12)


def told(*entries: Entry) -> str:
    out = io.StringIO()
    console = Console(file=out, width=100, color_system=None)
    for one in entries:
        for part in shown(one, width=100, now=100.0, has_colors=False):
            console.print(part)
    return out.getvalue()


HOSTILE_ENTRIES = [
    entry(EntryKind.SAID, NothingPart(), HOSTILE, by=HOSTILE),
    entry(EntryKind.REPLY, ReplyPart(cites=(Cite(kind="job", id=HOSTILE),), unknown=(HOSTILE,), is_cut=True), HOSTILE),
    entry(EntryKind.CALL, CallPart(call_id="1", tool=HOSTILE, arguments={HOSTILE: HOSTILE, "x": [HOSTILE]}), HOSTILE),
    entry(
        EntryKind.RESULT,
        ResultPart(
            call_id="1",
            tool=HOSTILE,
            table=Table(columns=(HOSTILE,), rows=((HOSTILE,),)),
            plot=Plot(
                title=HOSTILE, x_label=HOSTILE, y_label=HOSTILE, series=(Series(name=HOSTILE, points=((0, 1),)),)
            ),
        ),
        HOSTILE,
    ),
    ask(why=HOSTILE, victims=[Victim(job_id=HOSTILE, what=HOSTILE, lost_s=1)]).model_copy(update={"text": HOSTILE}),
    entry(EntryKind.ANSWER, AnswerPart(ask=1, answer=Verdict.DENY, note=HOSTILE), HOSTILE, by=HOSTILE),
    entry(EntryKind.TROUBLE, TroublePart(code="x"), HOSTILE),
    entry(EntryKind.STOPPED, NothingPart(), HOSTILE),
]


@pytest.mark.parametrize("one", HOSTILE_ENTRIES, ids=lambda one: one.kind.value)
def test_nothing_in_an_entry_steers_the_terminal(one: Entry) -> None:
    assert all(c.isprintable() or c == "\n" for c in told(one))


def test_a_reply_that_is_being_written_does_not_steer_the_terminal_either() -> None:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=100, color_system=None))
    for offset, character in enumerate(HOSTILE):  # an escape sequence may come in pieces
        screen.show(TextPiece(offset=offset, text=character))
    assert out.getvalue().startswith("a")
    assert all(c.isprintable() for c in out.getvalue())


def test_markup_in_text_is_shown_as_it_is() -> None:
    assert "[bold]x[/bold] [link=http://a]" in told(
        entry(EntryKind.TROUBLE, TroublePart(code="x"), "[bold]x[/bold] [link=http://a]")
    )


def test_cost_and_victims_are_shown_with_the_question() -> None:
    shown_ask = told(
        ask(device_seconds=1200.0, cost_usd=0.5, victims=[{"job_id": "7", "what": "bob's", "lost_s": 180}])
    )
    assert "question 12: stop session s1" in shown_ask
    assert "it ends work" in shown_ask
    assert "20.0 device-minutes, $0.50" in shown_ask
    assert "job 7 (bob's), which loses 3 min of work" in shown_ask
    assert "another 10 min" in shown_ask
    assert "counts no more" in told(ask(expires_at=99.0))


@pytest.mark.parametrize(
    ("verdict", "words_"),
    [
        (Verdict.APPROVE, "question 12 was approved by bob: fine"),
        (Verdict.DENY, "question 12 was denied by bob: fine"),
        (Verdict.EXPIRED, "question 12 is over: nobody answered in time"),
    ],
)
def test_answers_say_whose_they_are(verdict: Verdict, words_: str) -> None:
    part = AnswerPart(ask=12, answer=verdict, note="fine")
    assert told(entry(EntryKind.ANSWER, part, by="bob")) == f"{words_}\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("y", Decision(True, None)),
        (" YES ", Decision(True, None)),
        ("n", Decision(False, None)),
        ("no, too dear", Decision(False, "too dear")),
        ("n too dear", Decision(False, "too dear")),
        ("", None),
        ("yesterday", None),
        ("nothing", None),
    ],
)
def test_a_typed_answer_is_yes_no_or_neither(typed: str, meant: Decision | None) -> None:
    assert decision(typed) == meant


def test_tables_are_shown_with_numbers_to_the_right_and_bounded() -> None:
    rows = tuple((f"s{n}", n / 3, None) for n in range(N_ROWS + 5))
    lines = told(
        entry(
            EntryKind.RESULT,
            ResultPart(call_id="1", tool="t", table=Table(columns=("session", "value", "x"), rows=rows)),
        )
    ).splitlines()
    assert lines[0].split() == ["session", "value", "x"]
    assert lines[2].split() == ["s1", "0.333333"]
    assert lines[-1] == "and 5 more rows; --json has all"
    assert len(lines) == N_ROWS + 2


def test_a_row_shorter_than_its_table_is_shown() -> None:
    table = Table(columns=("a", "b"), rows=((1,), (1, 2, 3)))
    assert "1" in told(entry(EntryKind.RESULT, ResultPart(call_id="1", tool="t", table=table)))


def plot(*series: Series) -> Plot:
    return Plot(title="loss", x_label="step", y_label="loss", series=series)


def text_of(made: Plot, *, has_colors: bool = True, width: int = 60) -> list[str]:
    return [line.plain for line in plotted(made, width=width, height=6, has_colors=has_colors)]


def test_a_plot_has_axes_and_a_line_from_corner_to_corner() -> None:
    lines = text_of(plot(Series(name="a", points=((0, 10), (50, 5), (100, 0)))))
    assert lines[0] == "loss"
    assert lines[1].startswith("        10 │⠉")
    assert lines[6].startswith("         0 │")
    assert lines[6].endswith("⣀")
    assert lines[7].split() == ["0", "step", "100"]
    assert lines[8].split() == ["loss", "⠤⠤", "a"]
    assert max(len(line) for line in lines) <= 60


def test_without_colors_series_are_letters() -> None:
    made = plot(Series(name="one", points=((0, 0), (9, 0))), Series(name="two", points=((0, 1), (9, 1))))
    lines = text_of(made, has_colors=False)
    assert "bbbb" in lines[1]
    assert "aaaa" in lines[6]
    assert lines[-1].split() == ["loss", "a", "one", "b", "two"]


@pytest.mark.parametrize(
    "points",
    [
        ((1.0, 1.0),),
        ((0.0, 5.0), (1.0, 5.0)),
        ((0.0, 1e308), (1.0, -1e308)),
        ((-1e308, 0.0), (1e308, 1.0)),
        ((0.0, 1e-320), (1.0, 2e-320)),
        ((0.0, float("nan")), (1.0, 2.0)),
        ((0.0, float("inf")), (1.0, 2.0), (float("nan"), 1.0)),
        ((0.0, 1.0), (1.0, None), (2.0, 3.0)),
    ],
)
def test_odd_values_are_plotted(points: tuple[tuple[float, float | None], ...]) -> None:
    lines = text_of(plot(Series.model_construct(name="a", points=points)))
    assert any(0x2800 < ord(c) <= 0x28FF for line in lines[1:7] for c in line)


def test_a_gap_is_not_bridged() -> None:
    (middle,) = {
        line[12 + 24]
        for line in text_of(plot(Series(name="a", points=((0, 1), (4, 1), (5, None), (6, 1), (10, 1)))))[1:7]
        if len(line) > 40
    }
    assert middle == " "


def test_nothing_to_plot_is_said() -> None:
    assert text_of(plot(Series(name="a", points=((0, None),)))) == ["loss", "there is nothing to plot yet"]


def given(before: str) -> list[str]:
    ids = Ids()
    ids.learn("session", ["s2", "s1"])
    ids.learn("trial", ["s1-t1"])
    ids.learn_from(Table(columns=("job", "state"), rows=(("41", "queued"), ("42", "running"), (None, "x"))))
    return [one.text for one in words(before, SLASHES, ids)]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("/", ["/help", "/curve", "/explain", "/sessions", "/stop"]),
        ("/curve ", ["s2", "s1", "s1-t1", "41", "42"]),
        ("/s", ["/sessions", "/stop"]),
        ("/explain ", ["41", "42"]),
        ("/explain 42", []),
        ("/stop ", ["s2", "s1"]),
        ("/stop s1", ["s1-t1"]),
        ("/sessions ", []),
        ("why does s1-", ["s1-t1"]),
        ("why ", []),
        ("a line\n/s", []),
    ],
)
def test_commands_and_ids_complete(before: str, expected: list[str]) -> None:
    assert given(before) == expected


def test_only_what_can_be_typed_is_learnt_from_tables() -> None:
    ids = Ids()
    ids.learn_from(
        Table(columns=("job", "node"), rows=(("j1", "local"), (HOSTILE, "a b"), ("", None), ("j1", "local")))
    )
    assert (ids.by_kind["job"], ids.by_kind["node"]) == (["j1"], ["local"])


def test_a_reply_is_shown_once_though_its_stream_broke() -> None:
    writing = Writing()
    seen = [
        writing.piece(0, "the lo"),
        writing.piece(6, "ss of"),
        writing.piece(0, "the loss of s1"),
        writing.piece(14, " is"),
    ]
    assert "".join(more.text for more in seen) == "the loss of s1 is"
    assert not any(more.is_anew for more in seen)
    writing.piece(17, " 0.3\n\n")
    assert writing.whole("the loss of s1 is 0.3").text == ""


def test_a_piece_behind_a_gap_waits_for_the_whole() -> None:
    writing = Writing()
    writing.piece(0, "ab")
    assert writing.piece(5, "x").text == ""
    assert writing.whole("abcdex").text == "cdex"


def test_another_reply_than_was_shown_begins_anew() -> None:
    writing = Writing()
    writing.piece(0, "half")
    more = writing.whole("another one")
    assert (more.text, more.is_anew) == ("another one", True)
    assert writing.end()
    assert writing.piece(0, "next").text == "next"
