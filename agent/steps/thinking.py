"""Taking up what a model said: lessons are kept, lost trials ended, refusals told to it and to people."""

from __future__ import annotations

from agent.deps import Deps
from agent.steps.early_stops import end_early
from agent.store.fenced import FencedWriter, Line
from agent.thinking.checking import MOST_REFUSALS
from agent.thinking.suggesting import MODEL
from agent.thinking.thinker import ModelThinker, Said

STEP = "think"

_LINES_READ = 200


def refused_before(writer: FencedWriter, arm: str) -> list[str]:
    """What was refused of the answers of an arm that earlier processes of this session got, the last of it."""
    lines, mark = writer.store.activity(writer.session_id, _LINES_READ), _refused(arm)
    said = [line.text.removeprefix(mark) for line in lines if line.step == STEP and line.text.startswith(mark)]
    return said[-MOST_REFUSALS:]


def _refused(arm: str) -> str:
    """Begins a line about a part of an answer; the last ones are what the next question says was refused."""
    return "not taken: " if arm == MODEL else f"not taken of the {arm}: "


def take_up_thoughts(deps: Deps) -> None:
    """Of every model, what came since the last time. New configurations are on the shelf by then."""
    for mind in deps.memory.minds:
        lines = [Line(step=STEP, text=text) for text in mind.take_news()]
        said = mind.take_said()
        if said is not None:
            lines.append(Line(step=STEP, text=said.text))
            lines += [Line(step=STEP, text=f"{_refused(mind.name)}{one}") for one in _taken_up(said, mind, deps)]
        deps.record.say(lines)


def _taken_up(said: Said, mind: ModelThinker, deps: Deps) -> tuple[str, ...]:
    """What was refused, a sentence each, but for what was refused of the last answer too."""
    trial_ids = {trial.trial_id for trial in deps.book.history().trials}
    kept = deps.lessons.offer(said.found.lessons, trial_ids, by=said.model)
    refused = list(kept.refusals)
    for wish in said.found.stops:
        why_not = end_early(wish, said.model, deps)
        if why_not is not None:
            refused.append(f"{wish.trial_id} is not ended early: {why_not}")
    return mind.refused(refused)
