"""`nightlab policy`: the scheduling policy in force, or what a file would set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.output import print_json, print_table

from .options import HomeOption, JsonOption, policy_at, runtime

if TYPE_CHECKING:
    from runtime_client.models import PolicySpec, QuotaSpec

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})

EPILOG = """\b
Examples:
  nightlab policy              what is in force
  nightlab policy lab.yaml     check a file, and show what it would set
  nightlab up --policy lab.yaml"""


@app.command(epilog=EPILOG)
def policy(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Check this file instead.", show_default=False)
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the scheduling policy: classes, quotas, limits. `nightlab up --policy FILE` puts another one in force."""
    if file is None:
        with runtime(home) as client:
            found = client.policy()
    else:
        from runtime.server.policy_file import spec_of

        found = spec_of(policy_at(file))
    if as_json:
        print_json(found)
        return
    _print(found)


def _print(found: PolicySpec) -> None:
    classes = sorted(found.classes.items(), key=lambda item: -item[1].priority)
    print_table(
        ("class", "#priority", "preemptible"),
        [(name, cls.priority, "yes" if cls.is_preemptible else "no") for name, cls in classes],
    )
    for quota in found.quotas:
        print(f"quota: {_describe(quota)}")
    for project, share in found.projects.items():
        print(f"project {project}: deserves {share.deserved_devices} devices, weight {share.weight:g}")
    for name in type(found).model_fields:
        value = getattr(found, name)
        if not isinstance(value, dict | tuple):
            print(f"{name}: {'no limit' if value is None else format(value, 'g')}")


def _describe(quota: QuotaSpec) -> str:
    who = "all projects together" if quota.project is None else f"project {quota.project}"
    what = "" if quota.priority_class is None else f" in class {quota.priority_class}"
    return f"{who} at most {quota.max_devices} devices{what}"
