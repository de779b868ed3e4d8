# Every target sets up what it needs in .venv and installs again only when pyproject.toml has changed.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run test check bench clean

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

run: .venv/.installed-runtime ## start the worker in the foreground (Ctrl-C ends it)
	@$(BIN)/shepherd worker

test: .venv/.installed-dev ## run every test but the benchmarks (ARGS="-k queue -x" to choose)
	SHEPHERD_TEST_REQUIRE_POSTGRES=1 $(BIN)/python -m pytest --ignore=tests/bench $(ARGS)

check: .venv/.installed-dev ## format, lint, types, and which module may import which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: .venv/.installed-dev ## measure: tests/bench/test_bench_*.py, then each report_*.py
	$(BIN)/python -m pytest tests/bench --benchmark-only --benchmark-sort=name \
	    --benchmark-columns=min,median,iqr,ops,rounds $(ARGS)
	@for report in tests/bench/report_*.py; do \
	    [ -e "$$report" ] || continue; \
	    echo "== $$report"; \
	    $(BIN)/python -m "tests.bench.$$(basename "$$report" .py)" || exit 1; \
	done

clean: ## remove everything that make made
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
	find shepherd_memory backends tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Empty in a healthy checkout; without a working Python in .venv (none yet, or the one that it points to was
# upgraded away) it makes the installs below run again, whatever their age.
STALE := $(if $(realpath $(BIN)/python),,stale)
.PHONY: stale
stale:

.venv/.installed-runtime: pyproject.toml $(STALE) | $(BIN)/python
	$(INSTALL) --editable .
	@touch $@

# What make run needs is part of this one.
.venv/.installed-dev: pyproject.toml $(STALE) | $(BIN)/python
	$(INSTALL) --editable '.[dev]'
	@touch .venv/.installed-runtime $@

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
