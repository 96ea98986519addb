"""The demo: one command that runs a whole research session on this machine and leaves a report."""

from .run import run_demo

__all__ = ["run_demo"]
