"""Questions that a person has to answer: what is shown of them, and what a typed answer means. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from agent.chat.entry import AnswerPart, AskPart, Entry, Verdict, Victim
from nightlab.inert import clean
from nightlab.output import duration

HOW = "[y]es, or [n]o and why (Ctrl-C stops the turn, Ctrl-D leaves it open)"
YES, NO = ("y", "yes"), ("n", "no")


@dataclass(frozen=True, slots=True)
class Decision:
    is_yes: bool
    note: str | None


def decision(text: str) -> Decision | None:
    """`y`, `no`, `n too dear`; None: it is neither."""
    first, _, rest = text.strip().partition(" ")
    word, note = first.lower().rstrip(",.:"), rest.strip() or None
    if word in YES:
        return Decision(True, note)
    return Decision(False, note) if word in NO else None


def lines(entry: Entry, now: float) -> Iterator[str]:
    """What it costs and whom, before all else that is asked."""
    part = entry.part
    assert isinstance(part, AskPart)
    yield f"question {entry.number}: {clean(entry.text)}"
    yield f"why you are asked: {clean(part.why)}"
    yield f"expected cost: {_cost(part)}"
    for victim in part.victims:
        yield f"would have to leave: {_victim(victim)}"
    if part.expires_at > now:
        until = time.strftime("%H:%M", time.localtime(part.expires_at))
        yield f"counts until {until}, for another {duration(part.expires_at - now)}"
    else:
        yield "its time is over: an answer counts no more"


def answered(entry: Entry) -> str:
    part = entry.part
    assert isinstance(part, AnswerPart)
    if part.answer is Verdict.EXPIRED:
        return f"question {part.ask} is over: nobody answered in time"
    word = "approved" if part.answer is Verdict.APPROVE else "denied"
    return f"question {part.ask} was {word} by {clean(entry.by)}" + (f": {clean(part.note)}" if part.note else "")


def how_to_answer(chat_id: str, number: int) -> str:
    """For one who is not there to be asked."""
    return f"answer with:  nightlab chat --chat {chat_id} --approve {number}  (or --deny {number} --note TEXT)"


def _cost(part: AskPart) -> str:
    told = []
    if part.device_seconds is not None:
        told.append(f"{part.device_seconds / 60:.1f} device-minutes")
    if part.cost_usd is not None:
        told.append(f"${part.cost_usd:.2f}")
    return ", ".join(told) or "not known, or none"


def _victim(victim: Victim) -> str:
    lost = "" if victim.lost_s is None else f", which loses {duration(victim.lost_s)} of work"
    return f"job {clean(victim.job_id)} ({clean(victim.what)}){lost}"
