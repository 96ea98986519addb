"""`nightlab sweep ...`: the nights of sweeps, read and told."""

from __future__ import annotations

import typer

from .sweep_install import INSTALL_EPILOG, UNINSTALL_EPILOG, install, uninstall
from .sweep_notify import NOTIFY_EPILOG, notify
from .sweep_report import HISTORY_EPILOG, REPORT_EPILOG, history, report

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Sweeps: the same trials night after night.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab sweep report digits-nightly --open",
)

app.command("report", epilog=REPORT_EPILOG)(report)
app.command("history", epilog=HISTORY_EPILOG)(history)
app.command("notify", epilog=NOTIFY_EPILOG)(notify)
app.command("install", epilog=INSTALL_EPILOG)(install)
app.command("uninstall", epilog=UNINSTALL_EPILOG)(uninstall)
