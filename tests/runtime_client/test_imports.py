"""The client stays light: importing the package loads nothing, importing the client nothing heavy."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

from runtime_client import training

HEAVY = ("mlflow", "sqlalchemy", "fastapi", "optuna", "langgraph", "numpy", "runtime", "agent", "nightlab")


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def test_the_package_alone_loads_nothing() -> None:
    assert not loaded_after("import runtime_client") & {*HEAVY, "httpx", "pydantic"}


def test_the_client_loads_nothing_heavy() -> None:
    assert not loaded_after("from runtime_client import RuntimeClient") & set(HEAVY)


def test_training_loads_no_framework_and_no_http() -> None:
    use = "from runtime_client import training; training.context(); training.should_stop(); training.restore()"
    assert not loaded_after(use) & {*HEAVY, "torch", "transformers", "lightning", "httpx", "pydantic"}


def test_no_public_name_of_training_is_hidden_by_a_module_of_that_name() -> None:
    modules = {module.name for module in pkgutil.iter_modules(training.__path__)}
    assert not modules & set(training.__all__)
    assert all(getattr(training, name) is not None for name in training.__all__)
