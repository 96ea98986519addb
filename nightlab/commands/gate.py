"""`nightlab gate ...`: what sessions ask of people first, and the answers."""

from __future__ import annotations

import getpass
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode, Failure
from nightlab.output import ago, note, print_json, print_table

from .agent_store import agent_store, known_session
from .options import HomeOption, JsonOption, home_folder

if TYPE_CHECKING:
    from agent.coding.diff import CodeDiff
    from agent.gates.gate import Answer, Gate
    from agent.store.store import AgentStore
    from agent.store.views import CodeState
    from runtime_client.models import Forecast

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="What sessions ask first: list, show, approve, deny.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab gate approve 3 --note 'small enough'",
)

GateId = Annotated[int, typer.Argument(metavar="GATE", help="Its number, such as 3.", show_default=False)]
NoteOption = Annotated[str | None, typer.Option("--note", help="Why; whoever suggested it reads it.", metavar="TEXT")]


@app.command("list", epilog="Example:  nightlab gate list --session s1 --all")
def list_gates(
    session: Annotated[str | None, typer.Option(metavar="SESSION", help="Of this session alone.")] = None,
    with_answered: Annotated[bool, typer.Option("--all", help="Those that were answered too.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what waits for an answer, the most urgent first, with what would happen to others if it ran now."""
    from agent.store.gates import GateStore

    folder = home_folder(home)
    with agent_store(folder) if session is None else known_session(folder, session) as store:
        people = GateStore(store)
        found = people.gates(session) if with_answered else people.waiting(session)
        now = store.clock()
        forecasts = _forecasts(folder, store, [gate for gate in found if gate.is_waiting(now)])
    if as_json:
        print_json([_data(gate, now, forecasts.get(gate.gate_id)) for gate in found])
        return
    if not found:
        print("nothing waits for an answer")
        return
    rows = [(gate.gate_id, gate.session_id, _cost(gate), ago(gate.asked_at), _answer(gate, now)) for gate in found]
    print_table(("gate", "session", "expected cost", "asked", "answer"), rows)
    for gate in found:
        print(f"\n{gate.gate_id}: {gate.text}")
        if gate.gate_id in forecasts:
            print(f"   now: {_prospect(forecasts[gate.gate_id])}")
    note("answer with:  nightlab gate approve GATE  (or deny GATE --note TEXT)")


@app.command("show", epilog="Example:  nightlab gate show 3")
def show(gate_id: GateId, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show one question; of edited code, what it changes. That is text which nobody has vouched for."""
    from agent.coding.diff import diff_of
    from agent.store.gates import GateNotFound, GateStore
    from agent.task import Task

    folder = home_folder(home)
    with agent_store(folder) as store:
        try:
            gate = GateStore(store).gate(gate_id)
        except GateNotFound as error:
            raise Failure(str(error), exit_code=ExitCode.WRONG_USE, code="unknown_gate", kind="not_found") from error
        now = store.clock()
        forecasts = _forecasts(folder, store, [gate] if gate.is_waiting(now) else [])
        code = None if gate.trial is None else gate.trial.facts.edited
        task = Task.model_validate_json(store.session(gate.session_id).task_json)
        found = None if code is None else diff_of(code, task, folder, gate.session_id)
    if as_json:
        print_json(_data(gate, now, forecasts.get(gate_id)) | {"diff": None if found is None else asdict(found)})
        return
    print(f"{gate.gate_id}: {gate.text}\n   expected cost: {_cost(gate)}; {_answer(gate, now)}")
    if gate_id in forecasts:
        print(f"   now: {_prospect(forecasts[gate_id])}")
    if code is not None:
        _print_diff(found, code)
    if gate.is_waiting(now):
        note(f"answer with:  nightlab gate approve {gate_id}  (or deny {gate_id} --note TEXT)")


@app.command("approve", epilog="Example:  nightlab gate approve 3")
def approve(
    gate_id: GateId, note_text: NoteOption = None, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Let it go ahead: it is launched before what is ready beside it. The first answer counts."""
    from agent.gates.gate import Answer

    _answer_it(gate_id, Answer.APPROVE, note_text, home, as_json)


@app.command("deny", epilog="Example:  nightlab gate deny 3 --note 'too dear for what it brings'")
def deny(gate_id: GateId, note_text: NoteOption = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Refuse it: it is withdrawn, and not asked about again. The first answer counts."""
    from agent.gates.gate import Answer

    _answer_it(gate_id, Answer.DENY, note_text, home, as_json)


def _print_diff(found: CodeDiff | None, code: CodeState) -> None:
    if found is None:
        print("   its code is not there any more")
        return
    who = "begins here: it was written by a model, an agent or a person, and nobody has vouched for it"
    print(f"\n--- the edit (+{code.added} -{code.removed} lines against the base) {who} ---")
    print(found.text)
    print("--- the edit goes on, and is cut here ---" if found.is_cut else "--- the edit ends here ---")


def _answer_it(gate_id: int, answer: Answer, said: str | None, home: Path | None, as_json: bool) -> None:
    """
    Raises:
        Failure: there is no such gate, or it was answered before.
    """
    from agent.store.gates import GateNotFound, GateStore

    with agent_store(home_folder(home)) as store:
        try:
            done = GateStore(store).answer(gate_id, answer, by=getpass.getuser(), note=said)
        except GateNotFound as error:
            raise Failure(str(error), exit_code=ExitCode.WRONG_USE, code="unknown_gate", kind="not_found") from error
        now = store.clock()
    if not done.is_first:
        raise Failure(
            f"gate {gate_id} was answered before, and that counts: {done.gate.words}",
            exit_code=ExitCode.WORK_FAILED,
            code="answered_before",
            kind="conflict",
        )
    if as_json:
        print_json(_data(done.gate, now, None))
    else:
        print(f"gate {gate_id} is {done.gate.words}")


def _forecasts(folder: Path, store: AgentStore, waiting: list[Gate]) -> dict[int, Forecast]:
    """By the runtime's what-if, as if each were submitted now; none where it does not answer."""
    from agent.task import Task
    from agent.tools.trial_job import trial_job
    from runtime_client.client import RuntimeClient
    from runtime_client.errors import RuntimeClientError

    found: dict[int, Forecast] = {}
    if not any(gate.trial is not None for gate in waiting):
        return found
    try:
        with RuntimeClient.from_home(folder, timeout_s=5.0) as client:
            for gate in waiting:
                if gate.trial is not None:
                    session = store.session(gate.session_id)
                    task = Task.model_validate_json(session.task_json)
                    found[gate.gate_id] = client.what_if(
                        trial_job(task, session, gate.trial, fence=max(session.fence, 1))
                    )
    except RuntimeClientError:
        return found
    return found


def _data(gate: Gate, now: float, forecast: Forecast | None) -> dict[str, object]:
    told = None if forecast is None else forecast.model_dump(mode="json")
    return asdict(gate) | {"is_waiting": gate.is_waiting(now), "forecast": told}


def _cost(gate: Gate) -> str:
    return "not known" if gate.cost_device_s is None else f"{gate.cost_device_s / 60:.1f} device-minutes"


def _answer(gate: Gate, now: float) -> str:
    if not gate.is_waiting(now):
        return gate.words if gate.answer is not None else f"{gate.unanswered}: nobody answered in time"
    until = time.strftime("%H:%M", time.localtime(gate.answer_by))
    return f"waits; {gate.unanswered} at {until}"


def _prospect(forecast: Forecast) -> str:
    gone = [victim.job_id for victim in forecast.victims]
    return f"{forecast.summary}" + (f"; makes leave: {', '.join(gone)}" if gone else "")
