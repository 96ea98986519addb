"""The process that sends one message to one address, so that a server that hangs hangs nothing but it.

`python -m agent.notices.sending` reads `{"url", "title", "body"}` from standard input and prints one line:
`{"outcome", "address", "detail"}`. The address never stands in the arguments, which every user of a machine can read.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import TypedDict
from urllib.parse import unquote, urlsplit

MAX_DETAIL = 200
STAMP = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ - [A-Z]+ - ")


class Answer(TypedDict):
    outcome: str
    """sent, failed, invalid."""
    address: str
    """Scheme and machine, without anything secret."""
    detail: str


def send(url: str, title: str, body: str) -> Answer:
    """Tell one address, once."""
    import apprise

    sender = apprise.Apprise(asset=apprise.AppriseAsset(app_id="nightlab", app_desc="nightlab", app_url=""))
    with apprise.LogCapture(level=logging.WARNING) as log:
        is_known = bool(sender.add(url))
        told = is_known and bool(sender.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT))
        lines = [STAMP.sub("", line) for line in str(log.getvalue()).splitlines() if line.strip()]
    if not is_known or not len(sender):
        detail = "no address that Apprise knows; its list: https://github.com/caronc/apprise/wiki"
        return Answer(outcome="invalid", address=public_scheme(url), detail=detail)
    public = urlsplit(str(sender[0].url(privacy=True)))
    address = f"{public.scheme}://{public.netloc.rpartition('@')[2]}"
    detail = scrubbed(lines[-1], url) if lines and not told else ""
    return Answer(outcome="sent" if told else "failed", address=address, detail=detail)


def public_scheme(url: str) -> str:
    """Of an address that may be anything: no more than what comes before `://`."""
    scheme, colon, _ = url.partition("://")
    return f"{scheme}://..." if colon and re.fullmatch(r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}", scheme) else "an address"


def scrubbed(text: str, url: str) -> str:
    """Without any part of the address but its scheme and machine."""
    address, _, query = url.partition("?")
    rest = address.partition("://")[2]
    user, _, place = rest.rpartition("@")
    parts = {rest, user, query, *user.split(":"), *place.split("/")[1:], *re.split(r"[&=]", query)}
    known = {piece for part in parts for piece in (part, unquote(part)) if len(piece) > 3}
    for piece in sorted(known, key=len, reverse=True):
        text = text.replace(piece, "****")
    return " ".join(text.split())[:MAX_DETAIL].rstrip(".")


def main() -> int:
    given = json.load(sys.stdin)
    print(json.dumps(send(given["url"], given["title"], given["body"])), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
