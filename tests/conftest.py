"""Puts this folder on the import path, and shares the one real MLflow server of a test session."""

from __future__ import annotations

import signal

from mlflow_server import mlflow_server

__all__ = ["mlflow_server"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it puts in the background deaf to Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
