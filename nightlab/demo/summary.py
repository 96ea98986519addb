"""The last page of the demo on the terminal: table, best against default, verdict, preemption, addresses."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agent.report import wording
from agent.report.facts import ReportInput, best_trial, is_measured
from agent.report.timeline import Preemption, SlotUse
from agent.store.views import FinalResult, Interval, ParamValue
from nightlab.inert import clean
from nightlab.live.text import params

from .outcome import Outcome

TOP = 6
VERDICT_STYLE = {"supported": "green", "refuted": "red"}


def print_summary(console: Console, outcome: Outcome, *, report: Path, home: Path, took_s: float) -> None:
    facts = outcome.facts
    result = facts.session.result
    parts: list[RenderableType] = [top_trials(facts)]
    if result is not None:
        parts += [against_default(result, facts.task.objective.metric), verdict(result)]
    console.print()
    console.print(Group(*parts))
    console.print(story(outcome))
    console.print(figures(outcome, took_s))
    console.print(addresses(facts, report=report, home=home))
    for shortcoming in outcome.shortcomings:
        console.print(Text(f"Not complete: {clean(shortcoming)}", style="bold red"), soft_wrap=True)


def top_trials(facts: ReportInput) -> Table:
    measured = sorted(
        (t for t in facts.search_trials if is_measured(t)),
        key=lambda t: (-(t.value or 0.0) if facts.is_maximized else (t.value or 0.0), t.number),
    )
    best = best_trial(facts)
    title = f"Best {min(TOP, len(measured))} of {wording.plural(len(facts.search_trials), 'configuration')}"
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, header_style="bold", pad_edge=False)
    table.add_column("trial", justify="right")
    for name in facts.task.space:
        table.add_column(Text(clean(name)), justify="right")
    table.add_column(Text(clean(facts.task.objective.metric)), justify="right")
    table.add_column("suggested by")
    for trial in measured[:TOP]:
        style = "yellow" if best is not None and trial.trial_id == best.trial_id else ""
        cells = [str(trial.number), *[wording.parameter(trial.params.get(name)) for name in facts.task.space]]
        cells += [wording.number(trial.value), trial.suggested_by]
        table.add_row(*[Text(clean(cell)) for cell in cells], style=style)
    return table


def against_default(result: FinalResult, metric: str) -> Table:
    table = Table(
        title=Text("\nOver fresh seeds, the same for both", style="bold"),
        title_justify="left",
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    for name in ("", f"mean {clean(metric)}", "interval", "seeds"):
        table.add_column(Text(name), justify="right" if name else "left")
    rows: list[tuple[str, Interval | None, dict[str, ParamValue] | None]] = [
        ("default", result.default_mean, result.default),
        ("best", result.best_mean, result.best),
        ("difference", result.difference, None),
    ]
    table.add_column("configuration")
    for name, interval, configuration in rows:
        is_difference = configuration is None
        table.add_row(
            Text(name, style="bold"),
            wording.estimate(interval, signed=is_difference),
            Text(wording.bounds(interval, signed=is_difference)),
            wording.NONE if interval is None else str(interval.n),
            Text("" if configuration is None else params(tuple(configuration.items()))),
        )
    return table


def verdict(result: FinalResult) -> Panel:
    style = VERDICT_STYLE.get(result.verdict, "yellow")
    lines = [Text(clean(result.sentence))]
    if result.held_out_looks:
        lines.append(Text(f"Looks at the held-out metric: {result.held_out_looks}.", style="bright_black"))
    return Panel(
        Group(*lines), title=Text(result.verdict, style=f"bold {style}"), title_align="left", border_style=style
    )


def story(outcome: Outcome) -> Group:
    return Group(*[Text(line) for p in outcome.preemptions for line in preemption_story(p)])


def preemption_story(p: Preemption) -> list[str]:
    """What happened to one attempt that stepped aside."""
    who = p.job_id if p.trial_number is None else f"{p.job_id} (trial {p.trial_number})"
    left = "" if p.left_at is None else f" and left {wording.duration(p.left_at - p.ordered_at)} later"
    saved = "without a checkpoint" if p.checkpoint_step is None else f"with a checkpoint of step {p.checkpoint_step}"
    lines = [f"Preempted: {who} was asked to make room for {p.beneficiary}{left}, {saved}."]
    if p.resumed_attempt is not None:
        since = "" if p.checkpoint_step is None else f" from step {p.checkpoint_step}"
        lines.append(
            f"           It went on{since} as attempt {p.resumed_attempt} and {p.state}, "
            f"in the same MLflow run {p.run_id[:12]}…"
        )
    return lines


def figures(outcome: Outcome, took_s: float) -> Text:
    use: SlotUse = outcome.use
    n_jobs = wording.plural(len(outcome.facts.jobs), "job")
    return Text(
        f"Finished trials: {outcome.n_measured} ({n_jobs}) in {wording.duration(took_s)}. "
        f"Slots busy: {wording.percent(use.leased_share)} of {wording.duration(use.span_s)} on "
        f"{wording.plural(use.n_devices, 'slot')} (training was logging for "
        f"{wording.percent(use.user_share)} of it; the rest is mostly imports)."
    )


def addresses(facts: ReportInput, *, report: Path, home: Path) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row(Text("Report", style="bold"), Text(str(report)))
    table.add_row(Text("MLflow", style="bold"), Text(facts.mlflow_url or "the run is not there yet"))
    table.add_row("", Text(f"(open it again with: nightlab up --home {home})", style="bright_black"))
    return table
