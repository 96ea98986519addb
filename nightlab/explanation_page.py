"""Why a job is where it is, and what a new one would meet, as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightlab.output import duration

if TYPE_CHECKING:
    from runtime_client.models import Departure, ExpectedStart, Explanation, Forecast


def print_explanation(explanation: Explanation) -> None:
    print(explanation.summary)
    if explanation.queue_position is not None:
        print(f"place in the queue: {explanation.queue_position}")
    _print_expected(explanation.expected_start)
    for line in explanation.details:
        print(f"  {line}")
    for departure in explanation.departures:
        print(f"  attempt {departure.attempt} {_asked(departure)}{_for_whom(departure)}{_how_it_went(departure)}")
    if explanation.cost_to_others:
        print("left for it:")
        for departure in explanation.cost_to_others:
            who = f"{departure.job_id} ({departure.priority_class}), attempt {departure.attempt}"
            print(f"  {who}{_how_it_went(departure)}")


def print_forecast(forecast: Forecast) -> None:
    print(forecast.summary)
    if forecast.queue_position is not None and forecast.prospect == "waits":
        print(f"place in the queue: {forecast.queue_position}")
    if forecast.prospect != "starts":
        _print_expected(forecast.expected_start)
    if forecast.behind:
        print(f"behind {', '.join(forecast.behind)}")
    for victim in forecast.victims:
        unsaved = f"{victim.lost_device_seconds:.0f} device-seconds of work since its last checkpoint"
        print(f"  {victim.job_id} ({victim.priority_class}) would be asked to leave; it has {unsaved}")
    for line in forecast.details:
        print(f"  {line}")


def _print_expected(expected: ExpectedStart | None) -> None:
    if expected is None:
        return
    if expected.in_seconds is None:
        print(f"expected start: unknown, {expected.basis}")
    else:
        print(f"expected start: in {duration(expected.in_seconds)}, {expected.basis}")


ASKED = {
    "preempt": "was preempted",
    "pause": "was paused",
    "drain": "left its node",
    "shutdown": "left at shutdown",
    "renew": "reached its time limit, to go on as a new attempt",
}


def _asked(departure: Departure) -> str:
    return ASKED.get(departure.cause, f"was asked to stop ({departure.cause})")


def _for_whom(departure: Departure) -> str:
    if departure.beneficiary is not None:
        return f" for {departure.beneficiary}"
    return f" ({departure.reason})" if departure.reason else ""


def _how_it_went(departure: Departure) -> str:
    if departure.left_at is None:
        return ": still leaving"
    went = f": left after {duration(departure.left_at - departure.asked_at)}"
    if departure.outcome not in (None, "preempted"):
        went += f" ({departure.outcome})"
    if departure.lost_device_seconds is None:
        return f"{went}, what it lost is no longer known"
    return f"{went}, lost {departure.lost_device_seconds:.0f} device-seconds"
