"""The command `nightlab`. The root of the command tree, and the one place where exceptions become words.

Typer with lazily imported commands: `nightlab --help` imports Typer and this module, nothing else of ours.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import Abort, TyperException

from nightlab.failure import ExitCode, Failure

COMMANDS = {
    "up": "Start the runtime, MLflow and the agent on this machine.",
    "down": "Stop them in order; jobs are resumed at the next start.",
    "service": "The runtime, started with the machine: install, uninstall, status.",
    "status": "What is up, what runs, what waits.",
    "job": "Run, list, explain, cancel jobs; read their output.",
    "policy": "The scheduling policy: classes, quotas, limits; or check a file.",
    "node": "The machines and their devices: list, cordon, drain, reserve.",
    "pause": "Checkpoint and hold jobs until they are unpaused.",
    "unpause": "Lift a hold.",
    "stop": "Take every agent's right to submit, at once.",
    "allow": "Give the agents that right back.",
    "budget": "Device time that a session or a project may use.",
    "spend": "Device-hours and cost: useful, replicate, lost, failed, idle.",
    "gc": "Delete checkpoints that nobody needs any more.",
    "research": "Sessions: check a task, start, follow, stop, resume, report, suggest.",
    "chat": "Ask what runs and why, have it changed: in words, or by / commands.",
    "web": "The web page of sessions, trials and chats: print its link, or open it.",
    "gate": "What sessions ask of people first: list, show, approve, deny.",
    "sweep": "Sweeps: the same trials night after night; their reports.",
    "trial": "Trials of all sessions: search, list, show, compare, reproduce, export.",
    "model": "The language models of sessions: their calls and what they cost.",
    "mcp": "The door for coding agents of others: read, and propose trials (MCP).",
    "verify": "Check an evidence folder and run it again here.",
    "simulate": "Replay a trace of real jobs with this scheduler, in virtual time.",
    "lab": "Whole research sessions on pretended training, in virtual time.",
    "demo": "A whole research session on real training, in minutes.",
}
"""Each lives in `nightlab.commands.<name>`, which has an `app`."""
GROUPS = ("service", "job", "node", "budget", "research", "gate", "sweep", "trial", "model")
"""These do nothing by themselves; alone they show their help."""


class LazyGroup(TyperGroup):
    """Knows the names and first lines of its commands; imports one when it is used."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, line in COMMANDS.items():
            self.add_command(TyperGroup(name=name, help=line, rich_markup_mode=None))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name in COMMANDS:
            command = typer.main.get_command(importlib.import_module(f"nightlab.commands.{name}").app)
        return name, command, rest


app = typer.Typer(
    name="nightlab",
    cls=LazyGroup,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start here:  nightlab demo",
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"nightlab {version('nightlab')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; NIGHTLAB_DEBUG=1 does the same.")] = False,
) -> None:
    """An agent that runs ML experiments on every idle device, and a runtime that lets urgent work through."""
    if debug:
        os.environ["NIGHTLAB_DEBUG"] = "1"


def main(arguments: list[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    _open_streams()
    given = sys.argv[1:] if arguments is None else arguments
    is_bare = not given or given in ([name] for name in GROUPS)
    sys.exit(_run([*given, "--help"] if is_bare else given))


def _open_streams() -> None:
    """Python has no stream where the caller closed one, as some schedulers do: what is printed there goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _run(given: list[str]) -> int:
    """The firewall of the command line: whatever a command raises becomes an exit code and a sentence."""
    try:
        result = typer.main.get_command(app).main(args=given, prog_name="nightlab", standalone_mode=False)
    except TyperException as error:
        _show_wrong_use(error, given)
        return int(error.exit_code)
    except (KeyboardInterrupt, Abort):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.WORK_FAILED
    except Exception as error:  # noqa: BLE001
        _show_traceback()
        failure = _as_failure(error)
        _tell(failure, given)
        return failure.exit_code
    return result if isinstance(result, int) else ExitCode.OK


def _as_failure(error: Exception) -> Failure:
    if isinstance(error, Failure):
        return error
    from nightlab.known_errors import failure_of

    return failure_of(error)


def _show_traceback() -> None:
    if os.environ.get("NIGHTLAB_DEBUG") not in (None, "", "0"):
        traceback.print_exc()


def _tell(failure: Failure, given: list[str]) -> None:
    if not _wants_json(given):
        print(f"nightlab: {failure.message}", file=sys.stderr)
        return
    from nightlab.output import print_json_error

    try:
        print_json_error(
            code=failure.code,
            kind=failure.kind,
            message=failure.message,
            is_retryable=failure.is_retryable,
            path=failure.path,
        )
    except OSError:  # Standard output is what failed.
        print(f"nightlab: {failure.message}", file=sys.stderr)


def _show_wrong_use(error: TyperException, given: list[str]) -> None:
    if _wants_json(given):
        _tell(Failure(_words_of(error), exit_code=ExitCode.WRONG_USE, code="wrong_use", kind="invalid"), given)
        return
    context = getattr(error, "ctx", None)
    print(f"nightlab: {_words_of(error)}", file=sys.stderr)
    if context is not None:
        print(f"How it is used: {context.command_path} --help", file=sys.stderr)


def _words_of(error: TyperException) -> str:
    return str(error.format_message()).replace("Value error, ", "")


def _wants_json(given: list[str]) -> bool:
    return "--json" in (given[: given.index("--")] if "--" in given else given)


if __name__ == "__main__":
    main()
