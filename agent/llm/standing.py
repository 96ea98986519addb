"""On which rung a model stands, and when it is left alone, from what became of its calls. Pure: instants are given.

Each call is told once, in order, to `after`; the rows of a session's calls, told again, give the same standing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.llm.chat import Outcome, Trouble
from agent.llm.rung import Rung

RUNGS = tuple(Rung)
"""The best first."""
MAX_DOUBLINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """When a model steps down, when up, and how long it is left alone. The defaults are judgement, not measurement."""

    best: Rung = Rung.TOOLS
    """Never asked by a better one than this."""
    n_unusable: int = 4
    """Unusable answers in a row that cost a rung; each answer that is asked for again counts."""
    n_rescued: int = 2
    """Questions that a worse rung had to answer, which cost a rung too, unless `n_good` used answers lie between."""
    n_good: int = 20
    """Used answers after which the next better rung is tried, once."""
    up_s: float = 1800.0
    """Seconds after a step down until the next better rung is tried, once; each vain try doubles both."""
    first_wait_s: float = 15.0
    """Seconds without a call after the first that got no answer; each further one in a row doubles it."""
    longest_wait_s: float = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One call, as the accounts have it."""

    rung: Rung
    outcome: Outcome | Trouble
    at: float
    """Seconds since the epoch."""


def tried(rung: str | None, outcome: str, at: float) -> Tried | None:
    """A call from a row of the accounts; None: it was no call of the ladder, or of another version of it."""
    outcomes: dict[str, Outcome | Trouble] = {one.value: one for one in (*Outcome, *Trouble)}
    rungs = {one.value: one for one in Rung}
    if rung not in rungs or outcome not in outcomes:
        return None
    return Tried(rung=rungs[rung], outcome=outcomes[outcome], at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    rung: Rung
    n_unusable: int = 0
    """In a row, on this rung."""
    n_rescued: int = 0
    """Questions that a worse rung had to answer, since it came to this rung or proved good on it."""
    n_good: int = 0
    """Since it came to this rung, last tried a better one in vain, or was last rescued by a worse one."""
    since: float = 0.0
    """When it came to this rung, or last tried a better one in vain."""
    n_vain: int = 0
    """Tries of a better rung in vain, in a row; one that it soon fell from again counts."""
    is_new: bool = False
    """It came up here by a try, and has not shown yet that it stays."""
    n_silent: int = 0
    """Calls in a row that got no answer."""
    silence: Trouble | None = None
    """Why the last of them got none."""
    silent_at: float = 0.0

    def wait_until(self, steps: Steps) -> float | None:
        """The instant before which no call is made; None: calls may be made."""
        if self.n_silent == 0:
            return None
        return self.silent_at + min(steps.longest_wait_s, _doubled(steps.first_wait_s, self.n_silent - 1))

    def next_rung(self, steps: Steps, now: float, *, has_menu: bool) -> Rung:
        """By which the next question is asked: a better one than it stands on where a try is due.

        Args:
            has_menu: Whether this question can be asked as one.
        """
        rung = self.rung
        better = _better(rung, steps, has_menu=has_menu)
        if better is not None and self._is_due(steps, now):
            return better
        return Rung.NONE if rung is Rung.MENU and not has_menu else rung

    def _is_due(self, steps: Steps, now: float) -> bool:
        is_proven = self.n_good >= _doubled(steps.n_good, self.n_vain)
        return is_proven or now - self.since >= _doubled(steps.up_s, self.n_vain)


def start(steps: Steps) -> Standing:
    return Standing(rung=steps.best)


def begun(steps: Steps, first: Tried | None) -> Standing:
    """Where it stood before the first call: on a worse rung than the best where an earlier session had found it so."""
    standing = start(steps)
    if first is None or RUNGS.index(first.rung) <= RUNGS.index(standing.rung):
        return standing
    return replace(standing, rung=first.rung, since=first.at)


def stood(steps: Steps, calls: Sequence[Tried]) -> Standing:
    """The standing after all these calls, the oldest first."""
    standing = begun(steps, next(iter(calls), None))
    for call in calls:
        standing = after(standing, call, steps)
    return standing


def after(standing: Standing, call: Tried, steps: Steps) -> Standing:
    """The standing once it is known what became of a call."""
    if isinstance(call.outcome, Trouble) and call.outcome is not Trouble.REFUSED:
        silent = replace(standing, n_silent=standing.n_silent + 1, silence=call.outcome, silent_at=call.at)
        return _unusable(silent, call, steps) if may_be_the_form(call.rung, call.outcome) else silent
    heard = replace(standing, n_silent=0, silence=None)
    match call.outcome:
        case Outcome.USED:
            return _used(heard, call, steps)
        case Outcome.UNUSABLE:
            return _unusable(heard, call, steps)
        case _:
            return _lower(heard, call)


def below(rung: Rung, *, has_menu: bool) -> Rung:
    """The next one down on which a question can be asked; `NONE` where there is none."""
    following = RUNGS[min(RUNGS.index(rung) + 1, len(RUNGS) - 1)]
    return below(following, has_menu=has_menu) if following is Rung.MENU and not has_menu else following


def _better(rung: Rung, steps: Steps, *, has_menu: bool) -> Rung | None:
    at = RUNGS.index(rung)
    found = RUNGS[at - 1] if at > 0 else None
    if found is Rung.MENU and not has_menu:
        found = RUNGS[at - 2]
    return found if found is not None and RUNGS.index(found) >= RUNGS.index(steps.best) else None


def may_be_the_form(rung: Rung, outcome: Outcome | Trouble | None) -> bool:
    """Some servers fail where a model's text does not fit the grammar of the tools: that is no outage."""
    return outcome in (Trouble.FAILED, Trouble.GARBLED) and rung in (Rung.TOOLS, Rung.SCHEMA)


def _used(standing: Standing, call: Tried, steps: Steps) -> Standing:
    if RUNGS.index(call.rung) < RUNGS.index(standing.rung):
        return Standing(rung=call.rung, since=call.at, n_vain=standing.n_vain, is_new=True, n_good=1)
    if call.rung is not standing.rung:
        return _rescued(standing, call, steps)
    stays = standing.is_new and standing.n_good + 1 >= steps.n_good
    return replace(
        standing,
        n_unusable=0,
        n_good=standing.n_good + 1,
        n_rescued=0 if standing.n_good + 1 >= steps.n_good else standing.n_rescued,
        is_new=standing.is_new and not stays,
        n_vain=0 if stays else standing.n_vain,
    )


def _rescued(standing: Standing, call: Tried, steps: Steps) -> Standing:
    """A worse rung answered as the last resort of a question; a menu always does, and says nothing of this rung."""
    if call.rung is Rung.MENU:
        return standing
    if standing.n_rescued + 1 >= steps.n_rescued:
        return _lower(standing, Tried(rung=standing.rung, outcome=Outcome.UNUSABLE, at=call.at))
    return replace(standing, n_rescued=standing.n_rescued + 1, n_good=0)


def _unusable(standing: Standing, call: Tried, steps: Steps) -> Standing:
    if call.rung is standing.rung and standing.n_unusable + 1 < steps.n_unusable:
        return replace(standing, n_unusable=standing.n_unusable + 1)
    return _lower(standing, call)


def _lower(standing: Standing, call: Tried) -> Standing:
    """One down from its own rung; a better one that was tried in vain only puts off the next try."""
    n_vain = min(standing.n_vain + 1, MAX_DOUBLINGS)
    if RUNGS.index(call.rung) < RUNGS.index(standing.rung):
        return replace(standing, n_good=0, since=call.at, n_vain=n_vain)
    if call.rung is not standing.rung:
        return standing
    return replace(
        standing,
        rung=below(standing.rung, has_menu=True),
        n_unusable=0,
        n_rescued=0,
        n_good=0,
        since=call.at,
        n_vain=n_vain if standing.is_new else standing.n_vain,
        is_new=False,
    )


def _doubled(first: float, times: int) -> float:
    return float(first * 2 ** min(times, MAX_DOUBLINGS))
