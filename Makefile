# Two commands from the README: `make demo` and `make test`. Everything they need goes into .venv here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.9

.PHONY: demo test check format marked clean help
.DELETE_ON_ERROR:

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.run-installed ## a real research session on real training, in a few minutes
	$(BIN)/nightlab demo $(DEMO_ARGS)

test: $(VENV)/.dev-installed ## the fast lane of the tests, under five minutes
	$(BIN)/python -m pytest -q -n 2 --dist loadfile $(PYTEST_ARGS)

# One after the other: these want the machine, or the one server they use, for themselves.
marked: $(VENV)/.dev-installed ## one slow suite: make marked SUITE=acceptance
	$(BIN)/python -m pytest -q -m "$(SUITE)" $(PYTEST_ARGS)

check: $(VENV)/.dev-installed ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev-installed ## mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "nightlab needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) can not make a virtual environment (on Debian: apt install python3-venv)"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# Bytecode is compiled at installation: a first `import mlflow` without it takes three times as long.
$(VENV)/.run-installed: pyproject.toml constraints.txt | $(BIN)/uv
	UV_COMPILE_BYTECODE=1 $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[examples]'
	@touch $@

$(VENV)/.dev-installed: pyproject.toml constraints.txt | $(BIN)/uv
	UV_COMPILE_BYTECODE=1 $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.run-installed

clean: ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
