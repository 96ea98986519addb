# Two commands from the README: `make demo` and `make test`. Everything they need goes into .venv here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.9
WEB := agent/web/page
PAGE := agent/web/static/index.html
NPM := $(WEB)/npm.sh
WEB_SOURCES := $(shell find $(WEB) -name node_modules -prune -o -type f ! -name wire.ts ! -name openapi.json -print)

.PHONY: demo test check format marked web clean help
.DELETE_ON_ERROR:

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.run-installed ## a real research session on real training, in a few minutes
	@[ -e $(PAGE) ] || $(MAKE) -s web || echo "The web page could not be built; the demo needs none. Later: make web"
	$(BIN)/nightlab demo $(DEMO_ARGS)

web: $(PAGE) ## the web page of nightlab up, from its sources

# Its types follow the API, so it is built anew when that changes too.
$(PAGE): $(WEB_SOURCES) $(wildcard agent/web/*.py agent/chat/*.py) $(WEB)/node_modules/.installed
	$(BIN)/python -m agent.web.openapi > $(WEB)/openapi.json
	$(NPM) run --silent types
	$(NPM) run --silent build
	@touch $@

$(WEB)/node_modules/.installed: $(WEB)/package-lock.json $(WEB)/package.json | $(VENV)/.run-installed
	$(NPM) ci --loglevel=error --fetch-retries=1 --fetch-retry-mintimeout=1000
	@touch $@

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
	@[ ! -e $(WEB)/src/api/wire.ts ] || $(NPM) run --silent check

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
	rm -rf $(VENV) $(WEB)/node_modules $(WEB)/openapi.json $(WEB)/src/api/wire.ts agent/web/static .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
