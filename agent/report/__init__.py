"""A session as a self-contained HTML report. Reads the store's views and the runtime; writes one file."""

from .build import build_report, write_report
from .facts import ReportInput
from .gather import SessionReader, gather_report_input

__all__ = ["ReportInput", "SessionReader", "build_report", "gather_report_input", "write_report"]
