"""`nightlab sweep ...`: the nights of sweeps: run, read, told."""

from __future__ import annotations

import typer

from .sweep_check import CHECK_EPILOG, check
from .sweep_install import INSTALL_EPILOG, UNINSTALL_EPILOG, install, uninstall
from .sweep_nights import ACCEPT_EPILOG, LIST_EPILOG, SHOW_EPILOG, STOP_EPILOG, accept, list_sweeps, show, stop
from .sweep_notify import NOTIFY_EPILOG, notify
from .sweep_report import HISTORY_EPILOG, REPORT_EPILOG, history, report
from .sweep_run import RUN_EPILOG, run

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Sweeps: the same trials night after night.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab sweep report digits-nightly --open",
)

app.command("run", epilog=RUN_EPILOG)(run)
app.command("check", epilog=CHECK_EPILOG)(check)
app.command("list", epilog=LIST_EPILOG)(list_sweeps)
app.command("show", epilog=SHOW_EPILOG)(show)
app.command("stop", epilog=STOP_EPILOG)(stop)
app.command("accept", epilog=ACCEPT_EPILOG)(accept)
app.command("report", epilog=REPORT_EPILOG)(report)
app.command("history", epilog=HISTORY_EPILOG)(history)
app.command("notify", epilog=NOTIFY_EPILOG)(notify)
app.command("install", epilog=INSTALL_EPILOG)(install)
app.command("uninstall", epilog=UNINSTALL_EPILOG)(uninstall)
