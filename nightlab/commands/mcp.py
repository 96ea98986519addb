"""`nightlab mcp`: the door for coding agents of others, over standard input or HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import note

from .options import HomeOption, home_folder

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})

EPILOG = """\b
Examples:
  nightlab mcp                                      # what a coding agent starts; it speaks over standard input
  nightlab mcp --http --port 8790                   # one server for several agents; the token is in ~/.nightlab
  nightlab mcp --skill > .agents/nightlab/SKILL.md  # teaches a coding agent the command line"""


@app.command(epilog=EPILOG)
def mcp(
    name: Annotated[
        str | None,
        typer.Option("--as", help="Whose its proposals are; else as it calls itself.", metavar="NAME"),
    ] = None,
    is_http: Annotated[bool, typer.Option("--http", help="Serve over HTTP, with a token, until stopped.")] = False,
    host: Annotated[str, typer.Option(help="Address for --http; this machine alone if not given.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port for --http.", min=1, max=65535)] = 8790,
    shows_skill: Annotated[bool, typer.Option("--skill", help="Print the skill file and do nothing else.")] = False,
    home: HomeOption = None,
) -> None:
    """Let an outside agent read sessions and jobs, and propose trials (MCP).

    It can do nothing else: not submit, not cancel, not change a budget. A session takes its proposals where the
    task has `outside` in search.use.
    """
    if shows_skill:
        print(skill_text(), end="")
        return
    if name is not None and not name.strip():
        raise wrong_use("--as is empty; leave it away or give a name", code="bad_name", path="as")
    folder = home_folder(home)
    from importlib.metadata import version

    from nightlab.outside.server import NAME_CHARACTERS, build_server

    server = build_server(folder, name=name.strip()[:NAME_CHARACTERS] if name else None, version=version("nightlab"))
    if not is_http:
        server.run("stdio")
        return
    _serve(folder, server, host=host, port=port)


def skill_text() -> str:
    return (Path(__file__).parent.parent / "outside" / "SKILL.md").read_text(encoding="utf-8")


def _serve(folder: Path, server: object, *, host: str, port: int) -> None:
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    from nightlab.outside.http import PATH, TOKEN_FILE, guarded_app, token_at

    assert isinstance(server, MCPServer)
    folder.mkdir(parents=True, exist_ok=True)
    web = guarded_app(server, host=host, port=port, token=token_at(folder))
    note(f"http://{host}:{port}{PATH}, with the token in {folder / TOKEN_FILE} as Authorization: Bearer ...")
    note("Ctrl-C stops it; sessions and jobs are not touched.")
    uvicorn.run(web, host=host, port=port, log_level="warning")
