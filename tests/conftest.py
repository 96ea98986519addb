"""Puts this folder on the import path, shares the one real MLflow server of a session, forbids paid model calls."""

from __future__ import annotations

import os
import signal

from mlflow_server import mlflow_server

__all__ = ["mlflow_server"]

# Of all tests, and of the programs that they start: a model beyond this machine is never called, so no test ever pays.
os.environ.setdefault("NIGHTLAB_MODEL_CALLS", "loopback")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it puts in the background deaf to Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
