"""Puts this folder on the import path, and shares the one real MLflow server of a test session."""

from __future__ import annotations

from mlflow_server import mlflow_server

__all__ = ["mlflow_server"]
