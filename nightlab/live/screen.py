"""Draws a snapshot for a terminal of at least 80 columns and 24 rows. Pure."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agent.report import wording
from agent.report.timeline import Preemption
from agent.store.views import Purpose
from nightlab.inert import clean

from . import text as words
from .snapshot import LiveSnapshot, Phase, QueueLine, SlotLine, Spend

PURPOSE_STYLE = {
    Purpose.SEARCH: ("search", "blue"),
    Purpose.REPLICATE: ("fresh seed", "cyan"),
    Purpose.HELD_OUT: ("held out", "magenta"),
    Purpose.RUNG: ("higher rung", "yellow"),
}
PHASE_STYLE = {Phase.FINISHED: "bold green", Phase.FAILED: "bold red", Phase.STOPPED: "yellow"}
BEST = "bold yellow"
URGENT = "bold red"
QUIET = "bright_black"
MIDDLE_ROWS = 5
VALUE_WIDTH = 6
BORDER = "bright_black"
STOPS_IN_ORDER = "Ctrl-C stops in order"


def render(snapshot: LiveSnapshot, width: int, height: int = 30, *, ctrl_c: str = STOPS_IN_ORDER) -> RenderableType:
    """At most `height` rows: slots and the activity shrink to fit, the rest is fixed. `ctrl_c`: what Ctrl-C does."""
    width = max(60, width)
    max_slots = max(2, (height - 17) // 2)
    parts: list[RenderableType] = [_header(snapshot, width), _slots(snapshot, width, max_slots)]
    parts.append(_side_by_side(_best(snapshot, width), _spend(snapshot.spend, width)))
    n_slot_rows = min(len(snapshot.slots), max_slots) + (len(snapshot.slots) > max_slots)
    rest = height - 1 - (n_slot_rows + 2) - (MIDDLE_ROWS + 2) - 1
    n_lines = _n_queue_lines(snapshot)
    parts.append(_queue_and_preemptions(snapshot, width, n_lines))
    parts.append(_activity(snapshot, width, max(1, rest - (n_lines + 2) - 2)))
    parts.append(_footer(snapshot, width, ctrl_c))
    return Group(*parts)


def _line(*parts: Text | tuple[str, str] | str, width: int | None = None) -> Text:
    line = Text.assemble(*parts, no_wrap=True, overflow="ellipsis")
    if width is not None:
        line.truncate(width, overflow="ellipsis")
    return line


def _panel(content: RenderableType, title: str, *, height: int | None = None) -> Panel:
    return Panel(
        content,
        title=Text(title, style="bold"),
        title_align="left",
        border_style=BORDER,
        padding=(0, 1),
        height=height,
    )


def _side_by_side(left: RenderableType, right: RenderableType) -> Table:
    grid = Table.grid(expand=True)
    grid.add_column(ratio=1)
    grid.add_column(ratio=1)
    grid.add_row(left, right)
    return grid


def _header(snapshot: LiveSnapshot, width: int) -> Table:
    grid = Table.grid(expand=True)
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    grid.add_column(justify="right", no_wrap=True)
    left = _line(
        (" ☾ night", "bold"),
        ("lab", BEST),
        ("  ", ""),
        (clean(snapshot.task_name), "bold"),
        (f" · session {snapshot.session_id} · ", QUIET),
        (str(snapshot.phase), PHASE_STYLE.get(snapshot.phase, "bold cyan")),
    )
    grid.add_row(left, Text(wording.clock(snapshot.since_start_s) + " ", style="bold"))
    grid.width = width
    return grid


def _slots(snapshot: LiveSnapshot, width: int, max_slots: int) -> Panel:
    inner = width - 4
    table = Table.grid(padding=(0, 1))
    shown = snapshot.slots[:max_slots]
    name_width = max((len(s.name) for s in shown), default=5)
    # Fixed widths, so that nothing jumps while values change.
    bar_width = 10 if width < 100 else 14
    for column in (name_width, 9, 10, 10, bar_width + 8, VALUE_WIDTH, 6):
        table.add_column(width=column, no_wrap=True, overflow="ellipsis")
    used = name_width + 9 + 10 + 10 + bar_width + 8 + VALUE_WIDTH + 6 + 7
    table.add_column(width=max(4, inner - used), no_wrap=True, overflow="ellipsis")
    for slot in shown:
        table.add_row(*_slot_cells(slot, bar_width))
    if not snapshot.slots:
        table.add_row(Text("none yet", style=QUIET))
    if len(snapshot.slots) > max_slots:
        rest = snapshot.slots[max_slots:]
        busy = sum(s.job_id is not None for s in rest)
        table.add_row(Text(f"+{len(rest)}", style=QUIET), Text(f"{busy} busy", style=QUIET))
    n_busy = sum(s.job_id is not None for s in snapshot.slots)
    return _panel(table, f"slots {n_busy}/{len(snapshot.slots)} busy")


def _slot_cells(slot: SlotLine, bar_width: int) -> list[Text]:
    if slot.job_id is None:
        return [Text(slot.name), Text("idle", style=QUIET)]
    if slot.purpose is None:
        what, kind, style = slot.job_id, slot.priority_class, URGENT if slot.priority_class == "critical" else "bold"
    else:
        (kind, style), what = PURPOSE_STYLE[slot.purpose], f"trial {slot.trial_number}"
    state, state_style = _slot_state(slot)
    last = Text(words.params(slot.params), style=QUIET)
    if slot.beneficiary is not None:
        last = Text(f"→ {slot.beneficiary}", style=URGENT)
    value = Text("" if slot.value is None else wording.brief(slot.value, width=VALUE_WIDTH), style="bold")
    return [
        Text(slot.name),
        Text(what, style="bold"),
        Text(kind, style=style),
        Text(state, style=state_style),
        _progress(slot, bar_width, style),
        value,
        Text(wording.clock(slot.elapsed_s), style=QUIET),
        last,
    ]


def _slot_state(slot: SlotLine) -> tuple[str, str]:
    if slot.state == "stopping":
        return ("preempting", URGENT) if slot.beneficiary is not None else ("stopping", "yellow")
    if slot.is_resumed:
        return ("resuming" if slot.step is None or slot.state == "starting" else "resumed", "green")
    return slot.state, QUIET if slot.state == "starting" else ""


def _progress(slot: SlotLine, width: int, style: str) -> Text:
    if slot.step is None:
        return Text("no metrics yet" if slot.state == "running" else "", style=QUIET)
    if not slot.n_steps:
        return Text(f"step {slot.step}")
    full, empty = words.bar(slot.step / slot.n_steps, width)
    return Text.assemble((full, style), (empty, QUIET), f" {slot.step}/{slot.n_steps}")


def _best(snapshot: LiveSnapshot, width: int) -> Panel:
    inner = width // 2 - 4
    if snapshot.best is None:
        lines = [Text("nothing measured yet", style=QUIET)]
    else:
        gain = ""
        if snapshot.default is not None:
            gain = f"  default {wording.number(snapshot.default, digits=4)}"
        lines = [
            _line((wording.number(snapshot.best), BEST), (f"  trial {snapshot.best_trial}", "bold"), (gain, QUIET)),
            Text(words.sparkline(snapshot.best_series, inner), style="yellow"),
            *_wrapped(words.params(snapshot.best_params), inner, 2),
        ]
    ended = f"{snapshot.n_measured} measured" + (f", {snapshot.n_invalid} failed" if snapshot.n_invalid else "")
    lines = [*lines[: MIDDLE_ROWS - 1], Text(ended, style=QUIET)]
    title = clean(f"best {snapshot.metric} ({snapshot.direction})")
    return _panel(Group(*[_fit(line, inner) for line in lines]), title, height=MIDDLE_ROWS + 2)


def _wrapped(text: str, width: int, max_lines: int) -> list[Text]:
    """Whole words over at most `max_lines` lines."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return [Text(line) for line in lines[:max_lines]]


def _fit(line: Text, width: int) -> Text:
    line.truncate(max(1, width), overflow="ellipsis")
    line.no_wrap = True
    return line


def _spend(spend: Spend, width: int) -> Panel:
    inner = (width + 1) // 2 - 4
    rows = [
        ("trials", str(spend.n_trials), str(spend.max_trials), spend.n_trials / spend.max_trials),
        ("fresh seeds", str(spend.n_fresh), str(spend.max_fresh), spend.n_fresh / spend.max_fresh),
        _time_row("wall time", spend.wall_s, spend.max_wall_s),
        _time_row("device time", spend.device_s, spend.max_device_s),
    ]
    bar_width = max(4, inner - 12 - 16)
    lines = []
    for name, spent, limit, share in rows:
        line = Text(f"{name:<12}")
        if share is not None:
            full, empty = words.bar(share, bar_width)
            line.append(full, style="green" if share < 0.9 else "yellow").append(empty, style=QUIET)
            line.append(f" {spent} / {limit}")
        else:
            line.append(f"{spent}").append("  no limit", style=QUIET)
        lines.append(_fit(line, inner))
    return _panel(Group(*lines), "spend against budget", height=MIDDLE_ROWS + 2)


def _time_row(name: str, spent_s: float, limit_s: float | None) -> tuple[str, str, str, float | None]:
    limit = "" if limit_s is None else wording.clock(limit_s)
    return name, wording.clock(spent_s), limit, None if limit_s is None else spent_s / limit_s


def _n_queue_lines(snapshot: LiveSnapshot) -> int:
    return max(1, min(3, max(len(snapshot.queue), len(snapshot.preemptions))))


def _queue_and_preemptions(snapshot: LiveSnapshot, width: int, n_lines: int) -> Table:
    inner = width // 2 - 4
    waiting = [_queue_line(q) for q in snapshot.queue[:n_lines]] or [Text("empty", style=QUIET)]
    told = [_preemption_line(p) for p in snapshot.preemptions[-n_lines:]] or [Text("none", style=QUIET)]
    return _side_by_side(
        _panel(Group(*[_fit(t, inner) for t in waiting]), f"queue {len(snapshot.queue)}", height=n_lines + 2),
        _panel(
            Group(*[_fit(t, (width + 1) // 2 - 4) for t in told]),
            f"preemptions {len(snapshot.preemptions)}",
            height=n_lines + 2,
        ),
    )


def _queue_line(waiting: QueueLine) -> Text:
    name = waiting.job_id if waiting.trial_number is None else f"trial {waiting.trial_number}"
    is_urgent = waiting.priority_class == "critical"
    return Text.assemble(
        (f"{name:<10}", "bold"),
        (waiting.priority_class, URGENT if is_urgent else ""),
        (f"  {wording.clock(waiting.waiting_s)}", QUIET),
        ("  will resume" if waiting.is_requeued else "", "green"),
    )


def _preemption_line(p: Preemption) -> Text:
    victim = p.job_id if p.trial_number is None else f"trial {p.trial_number}"
    step = "" if p.checkpoint_step is None else f" at step {p.checkpoint_step}"
    if p.left_at is None:
        fate, style = "checkpointing", URGENT
    elif p.resumed_attempt is None:
        fate, style = f"saved{step}, waits", "yellow"
    elif p.state == "succeeded":
        fate, style = f"resumed{step}, done", "green"
    else:
        fate, style = f"resumed{step}", "green"
    return Text.assemble((victim, "bold"), (" → ", QUIET), (p.beneficiary or "?", URGENT), ("  " + fate, style))


def _activity(snapshot: LiveSnapshot, width: int, n_lines: int) -> Panel:
    inner = width - 4
    start = snapshot.at - snapshot.since_start_s
    lines = [
        _fit(
            Text.assemble(
                (f"{wording.clock(max(0.0, a.at - start)):>5} ", QUIET),
                (f"{clean(a.step):<9.9} ", "cyan"),
                clean(a.text),
            ),
            inner,
        )
        for a in snapshot.activity[-n_lines:]
    ]
    return _panel(Group(*(lines or [Text("its process is starting", style=QUIET)])), "the agent", height=n_lines + 2)


def _footer(snapshot: LiveSnapshot, width: int, ctrl_c: str) -> Text:
    remark = clean(snapshot.notices[0]) if snapshot.notices else "" if snapshot.phase in PHASE_STYLE else ctrl_c
    is_up = snapshot.mlflow_state == "up"
    line = Text.assemble(
        (" MLflow ", "bold"),
        (clean(snapshot.mlflow_state), "green" if is_up else "yellow"),
        (f" {snapshot.mlflow_url}" if is_up and snapshot.mlflow_url else "", QUIET),
        (f" · {wording.plural(snapshot.n_outbox, 'record')} to mirror" if snapshot.n_outbox else "", QUIET),
        (f" · {remark}" if remark else "", QUIET),
    )
    return _fit(line, width)
