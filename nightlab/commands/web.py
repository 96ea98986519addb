"""`nightlab web`: the link to the web page, with the token that opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nightlab.output import note, print_json

from .options import HomeOption, JsonOption, home_folder

EPILOG = """\b
Examples:
  nightlab web                 the link of the page; it opens everything that you may do
  nightlab web --reader        a link for those who only look
  nightlab web --session s1    straight to one session
  nightlab web --open          in this machine's browser"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog=EPILOG)
def web(
    session: Annotated[str | None, typer.Option(metavar="SESSION", help="Its page, such as s1.")] = None,
    reader: Annotated[bool, typer.Option("--reader", help="With the token that reads and changes nothing.")] = False,
    is_opened: Annotated[bool, typer.Option("--open", help="Open it in a browser here.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the link of the web page: sessions, trials and chats, live.

    The link holds a token: who has it may do what you may, or read with --reader. The page is served to this machine
    alone; from another one, forward its port (ssh -L PORT:127.0.0.1:PORT).
    """
    from agent.web.keys import open_keys
    from agent.web.page_files import BUILT, INDEX
    from nightlab.web_link import await_agent_url, link, session_path

    folder = home_folder(home)
    url = await_agent_url(folder)
    if session is not None:
        from .agent_store import known_session

        with known_session(folder, session):
            pass
    keys = open_keys(folder)
    found = link(url, session_path(session), keys.reader_token if reader else keys.owner_token)
    is_built = (BUILT / INDEX).is_file()
    if as_json:
        role = "reader" if reader else "owner"
        print_json({"link": found, "url": url, "role": role, "session_id": session, "is_built": is_built})
    else:
        print(found)
    if not is_built:
        note("The page is not built here yet. In nightlab's folder: make web")
    elif is_opened:
        _open(folder, found)


def _open(folder: Path, target: str) -> None:
    import webbrowser

    from nightlab.web_link import opening_file

    if not webbrowser.open(opening_file(folder, target).as_uri()):
        note("There is no browser to open here; use the link in one that reaches this machine.")
