# `make run` and `make test` work on a fresh machine with Python 3.11+, pip and make.
# Without make (Windows): see "Without make" in README.md.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

# Tests start hundreds of processes: without bytecode each compiles its libraries anew, for 2 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run test check lint types suite format bench soak clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Understudy needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "This Python has no venv. On Debian or Ubuntu: apt-get install python3-venv. Or name another: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

run: setup
	@$(BIN)/understudy play swarm

check: lint types

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

types: setup
	$(BIN)/mypy

suite: setup
	$(BIN)/python -m pytest

# mypy has one thread and the tests often wait for a disk or a process: side by side they take less.
test: lint
	@$(MAKE) --no-print-directory -j 2 types suite

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python benchmarks/all.py

soak: setup
	$(BIN)/python -m pytest -m soak -n 2

clean:
	rm -rf $(VENV) .venv-bench .venv-bench-rllib .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
