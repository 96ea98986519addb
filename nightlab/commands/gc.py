"""`nightlab gc`: frees disk space."""

from __future__ import annotations

from typing import Annotated

import typer

from nightlab.failure import ExitCode
from nightlab.output import note, print_json, print_table

from .options import HomeOption, JsonOption, runtime

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
WORDS = {
    "live": "jobs that may still resume",
    "pinned": "pinned jobs",
    "winner": "best and default configurations",
    "no_verdict": "trials of sessions without a verdict",
    "own": "jobs of no session",
    "unknown": "folders that the database does not know",
    "losing_trial": "trials that lost",
    "older_than": "jobs that ended long ago",
    "over_quota": "over the quota of their project",
    "interrupted": "left behind by an interrupted clean-up",
}


@app.command(epilog="Example:  nightlab gc --dry-run")
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    older_than_days: Annotated[
        float | None,
        typer.Option(help="Also what jobs left that ended so long ago.", min=0, metavar="DAYS", show_default="never"),
    ] = None,
    quota_gb: Annotated[
        float | None,
        typer.Option(help="Most for each project; the oldest go first.", min=0, metavar="GB", show_default="policy"),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete checkpoints and working folders that nobody needs any more.

    After its session's verdict a trial that lost keeps its metrics, output and code, not its weights. What may still
    resume, what won, what is pinned (`nightlab job pin`) and what belongs to no session stays.
    """
    with runtime(home) as client:
        found = client.collect_garbage(dry_run=dry_run, older_than_days=older_than_days, quota_gb=quota_gb)
    if as_json:
        print_json(found)
    else:
        goes = "would go" if dry_run else "gone"
        rows = [
            (goes if row.goes else "stays", WORDS.get(row.reason, row.reason), str(row.n_folders), _size(row.n_bytes))
            for row in found.rows
        ]
        print_table(("", "what", "#folders", "#size"), rows)
        print(f"{_size(found.n_bytes_freed)} {'would be' if dry_run else 'are'} free again")
        for failure in found.failures:
            note(f"could not be deleted: {failure}")
    if found.failures:
        raise typer.Exit(ExitCode.WORK_FAILED)


def _size(n_bytes: int) -> str:
    """`0 B`, `12.3 MB`: powers of ten, as disks are sold."""
    size = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
