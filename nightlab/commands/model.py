"""`nightlab model ...`: what sessions have asked their language models, and what it cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from nightlab.output import print_json

from .agent_store import SessionId, known_session
from .model_check import CHECK_EPILOG, check
from .options import HomeOption, JsonOption, home_folder

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="The language models of sessions: their calls and what they cost.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab model calls s1",
)


app.command("check", epilog=CHECK_EPILOG)(check)


@app.callback()
def _group() -> None:
    """Keep `calls` a command of a group."""


@app.command("calls", epilog="Example:  nightlab model calls s1 --limit 50")
def calls(
    session_id: SessionId,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.", metavar="N")] = 20,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List a session's calls of its language model: for what, by which rung, what came of them, tokens and money."""
    from agent.llm.opening import archive_path
    from agent.store.calls import model_calls_of
    from nightlab.model_page import by_purpose, print_calls

    folder = home_folder(home)
    with known_session(folder, session_id) as store:
        made = model_calls_of(store, session_id)
    archive = archive_path(folder / "sessions", session_id)
    if as_json:
        print_json(
            {
                "calls": [asdict(call) for call in made[-limit:]],
                "n_calls": len(made),
                "by_purpose": [asdict(row) for row in by_purpose(made)],
                "archive": str(archive) if archive.exists() else None,
            }
        )
        return
    print_calls(made, limit)
    if archive.exists():
        print(f"\nwhat was asked and answered, by the number of the call: {archive}")
