"""Why a job failed, by rules. Pure.

The runtime names how an attempt ended (`exit_reason`): from what it knows first, from the output second. What it knows
is not doubted here. Where it read the output, or could tell no more than that the command failed, the end of the output
is looked at: the exception that ended the program and what it was raised for, on the rank that the runtime names.
What stands there long before the end was survived, and is no cause.
"""

from __future__ import annotations

import signal

from agent.doctor.diagnosis import Diagnosis, FailureClass
from agent.doctor.evidence import Evidence
from agent.doctor.output import Output
from agent.doctor.signs import Sign, Words, signs

KNOWN = {
    "run_timeout": FailureClass.TIME_LIMIT,
    "no_checkpoint_progress": FailureClass.TIME_LIMIT,
    "hung": FailureClass.HANG,
    "criteria_not_met": FailureClass.NO_METRIC,
    "device_lost": FailureClass.DEVICE,
    "bad_python": FailureClass.MISSING_FILE,
    "bad_command": FailureClass.MISSING_FILE,
    "node_lost": FailureClass.MACHINE,
    "supervisor_lost": FailureClass.MACHINE,
    "launcher_unavailable": FailureClass.MACHINE,
    "sandbox_unavailable": FailureClass.MACHINE,
    "queue_timeout": FailureClass.STOPPED,
    "dependency_unmet": FailureClass.STOPPED,
    "over_budget": FailureClass.STOPPED,
    "deadline": FailureClass.STOPPED,
    "preempted": FailureClass.STOPPED,
    "requeue_asked": FailureClass.STOPPED,
    "cancelled": FailureClass.STOPPED,
}
"""Exit reasons that the runtime knows by itself, whatever was printed."""
READ = {
    "out_of_memory_device": FailureClass.OUT_OF_DEVICE_MEMORY,
    "out_of_memory_host": FailureClass.OUT_OF_MEMORY,
    "disk_full": FailureClass.DISK_FULL,
    "device_unavailable": FailureClass.DEVICE,
    "network_error": FailureClass.NETWORK,
    "import_error": FailureClass.IMPORT,
    "bad_arguments": FailureClass.ARGUMENTS,
    "bad_checkpoint": FailureClass.CHECKPOINT,
    "permission_denied": FailureClass.PERMISSION,
    "missing_file": FailureClass.MISSING_FILE,
    "non_finite_metric": FailureClass.DIVERGED,
}
"""Exit reasons that it mostly read in the output, and that say enough."""
VAGUE = {
    "device_fault": FailureClass.DEVICE,
    "address_in_use": FailureClass.NETWORK,
    "collective_failure": FailureClass.DISTRIBUTED,
}
"""The same, where the output may say more."""
OWN = frozenset({"code_error", "do_not_requeue", "killed_by_signal"})
"""The command failed, and the runtime can not say why."""

_ALMOST_ALL = 0.85
"""Of the memory there is: a kill at that peak is most likely for it."""
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
_BY_NUMBERS = ("ValueError", "RuntimeError", "OverflowError", "ZeroDivisionError", "ArithmeticError")
"""Exceptions that a NaN may be behind, where a metric is one."""


def diagnose(evidence: Evidence) -> Diagnosis:
    """The failure's class, what says so, the cause and what to change; `UNKNOWN` where nothing tells."""
    output = Output(evidence)
    known = KNOWN.get(evidence.exit_reason or "")
    if known is not None:
        return _known(known, evidence)
    if evidence.exit_reason == "completed":
        return _without_value(evidence)
    return _by_output(evidence, output) or _by_signal(evidence, output) or _unknown(output)


def class_of_reason(exit_reason: str | None) -> FailureClass | None:
    """The class that an exit reason alone names; None: it names none."""
    reason = exit_reason or ""
    return KNOWN.get(reason) or READ.get(reason) or VAGUE.get(reason)


def _known(failure: FailureClass, evidence: Evidence) -> Diagnosis:
    words = signs().words[failure]
    cause = words.cause
    if failure is FailureClass.NO_METRIC:
        cause = _with_metrics(cause, evidence)
    elif failure is FailureClass.MISSING_FILE:
        cause = "its Python, its command or its folder does not exist"
    said = evidence.line or evidence.state_reason
    shown = (said,) if said else (f"exit reason: {evidence.exit_reason}",)
    return _diagnosis(failure, shown, Words(cause=cause, suggestion=words.suggestion), is_sure=True)


def _without_value(evidence: Evidence) -> Diagnosis:
    """It ended well; the metric that counts is missing or no number."""
    wanted = evidence.wanted_metric
    if wanted is not None and wanted in evidence.metrics and evidence.metrics[wanted] is None:
        words = signs().words[FailureClass.DIVERGED]
        return _diagnosis(FailureClass.DIVERGED, (f"the last value of {wanted} is no finite number",), words, True)
    if wanted is None or wanted in evidence.metrics:
        return _diagnosis(FailureClass.STOPPED, ("exit reason: completed",), signs().words[FailureClass.STOPPED], True)
    words = signs().words[FailureClass.NO_METRIC]
    cause = _with_metrics(words.cause, evidence)
    shown = (f"no value of {wanted} was logged",)
    return _diagnosis(FailureClass.NO_METRIC, shown, Words(cause=cause, suggestion=words.suggestion), True)


def _with_metrics(cause: str, evidence: Evidence) -> str:
    names = sorted(evidence.metrics)[:8]
    return f"{cause}; it logged {', '.join(names)}" if names else f"{cause}; it logged no metric at all"


def _by_output(evidence: Evidence, output: Output) -> Diagnosis | None:
    reason = evidence.exit_reason or ""
    is_fresh = output.is_at_end(evidence.line)
    read = READ.get(reason) if is_fresh else None
    sign, match = _sign(output, read)
    if read is not None:
        words = signs().words[read] if sign is None else _filled(sign, match)
        return _diagnosis(read, output.shown, words, is_sure=True)
    if sign is not None:
        return _diagnosis(
            sign.failure, output.with_line(_matching(sign, match)), _filled(sign, match), is_sure=sign.is_sure
        )
    vague = VAGUE.get(reason) if is_fresh else None
    if vague is not None:
        return _diagnosis(vague, output.shown, signs().words[vague], is_sure=False)
    return _by_exception(evidence, output)


def _by_exception(evidence: Evidence, output: Output) -> Diagnosis | None:
    """An exception without a sign: of the code, or of a value that was no number any more."""
    if not output.raised:
        return None
    not_finite = [name for name, value in evidence.metrics.items() if value is None]
    if not_finite and output.raised[-1].text.startswith(_BY_NUMBERS):
        shown = (*output.shown, f"the last value of {not_finite[0]} is no finite number")
        return _diagnosis(FailureClass.DIVERGED, shown, signs().words[FailureClass.DIVERGED], is_sure=False)
    words = signs().words[FailureClass.CODE]
    root = output.raised[0]
    kind = root.text.partition(":")[0].rpartition(".")[2]
    where = f" at {root.place}" if root.place else ""
    return _diagnosis(
        FailureClass.CODE,
        output.shown,
        Words(cause=f"{words.cause}: {kind}{where}", suggestion=words.suggestion),
        is_sure=True,
    )


def _sign(output: Output, only: FailureClass | None) -> tuple[Sign | None, str]:
    """The first sign that is found, and the line in which it is."""
    for sign in signs().in_order:
        if only is None or sign.failure is only:
            line = output.find(sign)
            if line is not None:
                return sign, line
    return None, ""


def _matching(sign: Sign, text: str) -> str:
    """Of the lines of a message, the one with the sign; the first where only all of them together have it."""
    lines = text.split("\n")
    return next((line for line in lines if sign.regex.search(line)), lines[0])


def _filled(sign: Sign, line: str) -> Words:
    found = sign.regex.search(line)
    groups = found.groupdict("it") if found is not None else {}
    if not groups:
        return sign.words
    return Words(cause=sign.words.cause.format_map(groups), suggestion=sign.words.suggestion.format_map(groups))


def _by_signal(evidence: Evidence, output: Output) -> Diagnosis | None:
    number = signal_number(evidence.exit_code)
    if number is None:
        return None
    name = signal.Signals(number).name
    shown = (f"killed by {name}", *output.shown)
    peak, most = evidence.peak_memory_mb, evidence.memory_mb
    if number == signal.SIGKILL and peak is not None and most is not None and peak >= _ALMOST_ALL * most:
        shown = (f"killed by {name} at a peak of {peak:.0f} MiB of {most:.0f} MiB", *output.shown)
        return _diagnosis(FailureClass.OUT_OF_MEMORY, shown, signs().words[FailureClass.OUT_OF_MEMORY], is_sure=False)
    if number in _CRASHES:
        words = Words(
            cause=f"native code below Python crashed ({name}): a bug there, or packages that do not fit each other",
            suggestion="run it with PYTHONFAULTHANDLER=1 to see the line, and install the packages anew together",
        )
        return _diagnosis(FailureClass.CODE, shown, words, is_sure=False)
    return _diagnosis(FailureClass.KILLED, shown, signs().words[FailureClass.KILLED], number != signal.SIGKILL)


def signal_number(exit_code: int | None) -> int | None:
    """The signal that ended a command, also where a shell tells it as 128 and its number; None: none did."""
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - 128
    return number if number in signal.valid_signals() and number > 0 and exit_code != 0 else None


def _unknown(output: Output) -> Diagnosis:
    return _diagnosis(FailureClass.UNKNOWN, output.last_words, signs().words[FailureClass.UNKNOWN], is_sure=False)


def _diagnosis(failure: FailureClass, shown: tuple[str, ...], words: Words, is_sure: bool) -> Diagnosis:
    return Diagnosis(failure=failure, evidence=shown, cause=words.cause, suggestion=words.suggestion, is_sure=is_sure)
