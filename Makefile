# Everything happens in ./.venv, which the first target that needs it creates.
# Needed on the machine: Python >= 3.11, pip and make. Another Python: make test PYTHON=python3.13

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup test test-fast demo lint format types bench docs wheel clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       solve, certify, compare and report, on embedded data (under a minute)"
	@echo "make test       the whole test suite"
	@echo "make test-fast  the suite without the slow tests"
	@echo "make lint       ruff: rules and format"
	@echo "make types      pyright"
	@echo "make bench      the benchmarks"
	@echo "make docs       the documentation, in docs/_build/html (about a minute)"
	@echo "make wheel      the package to install elsewhere, in dist"
	@echo "make clean      remove everything that was made here, .venv included"

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "blockl0 needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@

# two workers and one thread in each: more threads than cores would only get in each other's way
test test-fast: export OMP_NUM_THREADS ?= 1

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadgroup

test-fast: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

demo: $(STAMP)
	$(BIN)/python examples/demo.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(STAMP)
	@set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file; done

# The examples are run for their output; without that: make docs SPHINXOPTS='-D run_examples=0'
SPHINXOPTS ?=

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -d docs/_build/doctrees $(SPHINXOPTS) docs docs/_build/html
	@echo "The documentation is docs/_build/html/index.html"

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

wheel: $(STAMP)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) build dist demo_output docs/_build docs/gallery .pytest_cache .ruff_cache .hypothesis
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
