"""Two trials side by side: what they ran with, and the comparison of their configurations, by code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.planner.compared import Held, hold_against
from agent.store.views import ParamValue, TrialView
from nightlab.output import print_table, print_words

from .code_difference import CodeDifference, code_difference
from .record import TrialRecord, manifest_of

N_SHOWN = 20
"""Packages or files that are named for a person; --json has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    first: TrialRecord
    second: TrialRecord
    code: CodeDifference | None
    """None: they ran the same snapshot, or one of them is not there."""
    held: Held


def side_by_side(first: TrialRecord, second: TrialRecord, home: Path) -> SideBySide:
    one, other = manifest_of(home, first.code), manifest_of(home, second.code)
    return SideBySide(
        first=first,
        second=second,
        code=code_difference(one, other) if one is not None and other is not None else None,
        held=hold_against(first.siblings, second.siblings, first.task, second.task),
    )


def differing_params(one: TrialView, other: TrialView) -> dict[str, tuple[ParamValue, ParamValue]]:
    names = [*one.params, *(name for name in other.params if name not in one.params)]
    both = {name: (one.params.get(name), other.params.get(name)) for name in names}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def packages_apart(one: tuple[str, ...], other: tuple[str, ...]) -> dict[str, tuple[str | None, str | None]]:
    """Versions on both sides of each package that differs; None: it is not installed there."""
    first, second = (dict(text.partition("==")[::2] for text in side) for side in (one, other))
    names = sorted(first.keys() | second.keys(), key=str.lower)
    both = {name: (first.get(name), second.get(name)) for name in names}
    return {name: versions for name, versions in both.items() if versions[0] != versions[1]}


def comparison_data(sides: SideBySide) -> dict[str, Any]:
    one, other = sides.first, sides.second
    held = sides.held
    return {
        "trials": [asdict(one.trial), asdict(other.trial)],
        "differing_params": {name: list(values) for name, values in differing_params(one.trial, other.trial).items()},
        "code": {
            "snapshots": [one.code, other.code],
            "difference": None if sides.code is None else asdict(sides.code),
        },
        "python": [_python(one), _python(other)],
        "packages": {n: list(v) for n, v in packages_apart(*_packages(sides)).items()}
        if all(_packages(sides))
        else None,
        "data": [one.trial.facts.data, other.trial.facts.data],
        "device_model": [one.device_model, other.device_model],
        "comparison": {
            "comparison": held.comparison.value,
            "reason": held.reason,
            "n_pairs": held.n_pairs,
            "seeds": list(held.seeds),
            "left_out": held.left_out,
            "interval": asdict(held.result.interval) if held.result and held.result.interval else None,
            "alpha": held.result.alpha if held.result else None,
        },
    }


def print_comparison(sides: SideBySide) -> None:
    one, other = sides.first, sides.second
    rows = [("value", _value(one.trial), _value(other.trial)), ("seed", str(one.trial.seed), str(other.trial.seed))]
    for name, (a, b) in differing_params(one.trial, other.trial).items():
        rows.append((name, _shown(a), _shown(b)))
    rows += [
        ("code", _digest(one.code), _digest(other.code)),
        ("python", _python(one), _python(other)),
        ("device", one.device_model or "not known", other.device_model or "not known"),
        ("data", _digest(one.trial.facts.data, "unpinned"), _digest(other.trial.facts.data, "unpinned")),
    ]
    print_table(("", one.trial.trial_id, other.trial.trial_id), rows)
    n_same = len(one.trial.params.keys() & other.trial.params.keys()) - len(differing_params(one.trial, other.trial))
    print(f"\nother parameters: {max(n_same, 0)} the same")
    _print_code(sides)
    _print_packages(sides)
    print()
    print_words(sides.held.words(one.trial.trial_id, other.trial.trial_id))


def _print_code(sides: SideBySide) -> None:
    one, other = sides.first.code, sides.second.code
    if one is None or other is None:
        print("code: not pinned (no snapshot); it can not be told apart")
    elif one == other:
        print("code: the same")
    elif sides.code is None:
        print("code: differs; a snapshot was removed, so the files can not be told")
    else:
        names = [
            *(f"{path} (changed)" for path in sides.code.changed),
            *(f"{path} (only {sides.first.trial.trial_id})" for path in sides.code.only_first),
            *(f"{path} (only {sides.second.trial.trial_id})" for path in sides.code.only_second),
        ]
        print(f"code: differs in {_listed(names)}")


def _print_packages(sides: SideBySide) -> None:
    one, other = _packages(sides)
    if not one or not other:
        print("packages: not known of both")
        return
    apart = packages_apart(one, other)
    names = [f"{name} {a or 'none'} -> {b or 'none'}" for name, (a, b) in apart.items()]
    print(f"packages: {_listed(names) if names else 'the same'}")


def _packages(sides: SideBySide) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return sides.first.provenance.packages, sides.second.provenance.packages


def _python(record: TrialRecord) -> str:
    return record.provenance.python_version or record.provenance.python or "not known"


def _value(trial: TrialView) -> str:
    return "none" if trial.value is None else f"{trial.value:.6g}"


def _shown(value: ParamValue) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _digest(text: str | None, otherwise: str = "not pinned") -> str:
    return otherwise if text is None else text[:12]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - N_SHOWN} more" if len(names) > N_SHOWN else ""
    return ", ".join(names[:N_SHOWN]) + more
