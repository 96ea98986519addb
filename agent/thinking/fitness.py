"""What the tries of an endpoint mean for a session that would use it, and what to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.llm.check import NOBODY, Came, RungTried, Speed, Tried
from agent.llm.pace import LONGEST_S
from agent.llm.rung import Rung
from agent.planner.readiness import Finding, Level
from agent.task import Model, Prices, Task
from agent.thinking.room import LEAST_PROMPT_TOKENS, beside_prompt, prompt_limit

_WORDS = {
    Rung.TOOLS: "tool calls",
    Rung.SCHEMA: "a JSON schema",
    Rung.FENCED: "a block of JSON",
    Rung.MENU: "numbered choices",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of an endpoint without a call."""

    context_tokens: int | None = None
    """What fits into the model; None: it does not say."""
    names: tuple[str, ...] = ()
    """Of the models that it lists; empty: it lists none."""
    price: Prices | None = None


def reached(rungs: tuple[RungTried, ...], settings: Model) -> RungTried | None:
    """The best rung, of those that the task allows, by which answers come that a session takes; None: there is none."""
    allowed = list(Rung)[list(Rung).index(Rung(settings.rung)) :]
    return next((one for one in rungs if one.is_reached and one.rung in allowed), None)


def findings(tried: Tried, settings: Model, known: Known, *, task: Task | None = None) -> list[Finding]:
    """What is found, the gravest first within each matter.

    Args:
        task: Whose space counts in the schema of an answer; None: a space without parameters.
    """
    silent = next((one for one in tried.rungs if one.trouble in NOBODY), None)
    if silent is not None:
        names = ", ".join(sorted(known.names)[:8]) if settings.name not in known.names else ""
        listed = f"; it lists: {names}" if names else ""
        return [Finding(level=Level.PROBLEM, code=str(silent.trouble), text=f"{silent.note}{listed}")]
    found: list[Finding | None] = [
        _rung_finding(tried.rungs, settings),
        _wrong_finding(tried.rungs, settings),
        *_context_findings(settings, known.context_tokens, task),
        _speed_finding(tried.speed, settings),
        _price_finding(known.price),
    ]
    return [one for one in found if one is not None]


def _rung_finding(rungs: tuple[RungTried, ...], settings: Model) -> Finding:
    best = reached(rungs, settings)
    if best is None:
        silent = next((one for one in rungs if one.came is Came.SILENT), None)
        return Finding(
            level=Level.PROBLEM,
            code="no_rung",
            text="no rung gave an answer that can be used"
            f"{'' if silent is None else f': {silent.note}'}; a session would go on without this model",
            what_to_do="look at the rungs above; a larger model, or one that was tuned to follow instructions, may do",
        )
    text = f"it answers by {_WORDS[best.rung]}"
    if best.rung is Rung.MENU:
        what = (
            "it can only pick from choices that code has made; ask for the JSON schemas of your server, or a larger "
            "model"
        )
        return Finding(level=Level.WARNING, code="menu", text=f"{text} alone", what_to_do=what)
    if best.rung.value == settings.rung:
        return Finding(level=Level.FACT, code="rung", text=f"{text}; a session begins there and steps down by itself")
    text = f"{text}, not by {_WORDS[Rung(settings.rung)]}: a session begins there and steps down by itself"
    what = f"model.rung: {best.rung.value} saves the calls in vain"
    return Finding(level=Level.FACT, code="rung", text=text, what_to_do=what)


def _wrong_finding(rungs: tuple[RungTried, ...], settings: Model) -> Finding | None:
    best = reached(rungs, settings)
    if best is None or best.is_right:
        return None
    right = next((one for one in rungs[rungs.index(best) :] if one.is_right), None)
    what = (
        "expect little of it, whatever the sampler finds stays; a larger model, or one that was tuned to follow "
        "instructions, may do better"
        if right is None
        else f"set model.rung: {right.rung.value}, by which it was right"
    )
    text = (
        f"its answer by {_WORDS[best.rung]} was wrong, in the right form: a session takes such answers, and code "
        "checks what can be checked of them"
    )
    return Finding(level=Level.WARNING, code="wrong_answer", text=text, what_to_do=what)


def _context_findings(settings: Model, told: int | None, task: Task | None) -> list[Finding]:
    """The longest call against what the model takes, and whether anything is asked at all."""
    beside, prompt = beside_prompt(task), prompt_limit(task, settings)
    least = LEAST_PROMPT_TOKENS + beside + 2 * settings.max_tokens
    fits = min(one for one in (told, settings.context_tokens, 2**62) if one is not None)
    if fits < least:
        what = (
            "let the server keep a longer context (llama.cpp: -c, vLLM: --max-model-len, Ollama: "
            "OLLAMA_CONTEXT_LENGTH), or lower model.max_tokens"
        )
        parts = _parts(LEAST_PROMPT_TOKENS, beside, settings)
        text = f"{fits:,} tokens fit into the model, and the least that a question needs is {least:,} ({parts})"
        return [Finding(level=Level.PROBLEM, code="context_too_small", text=text, what_to_do=what)]
    if prompt < LEAST_PROMPT_TOKENS:
        what = f"give model.context_tokens: {told}" if told is not None else "lower model.max_tokens"
        text = f"without model.context_tokens a session leaves a question {max(prompt, 0):,} tokens, too few"
        return [Finding(level=Level.PROBLEM, code="context_too_small", text=text, what_to_do=what)]
    worst = prompt + beside + 2 * settings.max_tokens
    made_of = f"the worst case is {worst:,} ({_parts(prompt, beside, settings)})"
    if told is None:
        text = f"the endpoint does not say how much fits into the model; {made_of}"
        level = Level.FACT if settings.context_tokens is not None else Level.WARNING
        what = "" if level is Level.FACT else "give model.context_tokens"
        return [Finding(level=level, code="context_unknown", text=text, what_to_do=what)]
    text = f"{told:,} tokens fit into the model; {made_of}"
    if told >= worst:
        return [Finding(level=Level.FACT, code="context", text=text)]
    what = (
        f"give model.context_tokens: {told}, so that questions are shortened to fit; or a longer context at the server"
    )
    return [Finding(level=Level.WARNING, code="context_small", text=text, what_to_do=what)]


def _parts(prompt: int, beside: int, settings: Model) -> str:
    return (
        f"a question of {prompt:,}, {beside:,} for the form of its answer, and two answers of {settings.max_tokens:,}"
    )


def _speed_finding(speed: Speed, settings: Model) -> Finding | None:
    if speed.tokens_per_s is None:
        return None
    first = (
        "" if speed.first_token_s is None else f"the first word comes after {speed.first_token_s:.1f} s at most, then "
    )
    answer_s = (speed.first_token_s or 0.0) + settings.max_tokens / speed.tokens_per_s
    text = (
        f"{first}{speed.tokens_per_s:.0f} tokens a second: an answer of {settings.max_tokens:,} takes {answer_s:.0f} s"
    )
    allowed_s = settings.call_seconds or LONGEST_S
    if answer_s > allowed_s:
        return Finding(
            level=Level.WARNING,
            code="slow",
            text=f"{text}, and {allowed_s:g} are allowed for it",
            what_to_do=f"set model.call_seconds to {2 * answer_s:.0f} or more, or lower model.max_tokens",
        )
    return Finding(level=Level.FACT, code="speed", text=text)


def _price_finding(price: Prices | None) -> Finding:
    if price is None:
        return Finding(
            level=Level.FACT,
            code="price_unknown",
            text="its price is not known: budgets.cost_usd would not count it",
            what_to_do="give model.price (0 for one's own), or limit it by budgets.tokens",
        )
    text = f"{price.prompt:g} $ for a million tokens of questions, {price.completion:g} $ of answers"
    return Finding(level=Level.FACT, code="price", text=text)
