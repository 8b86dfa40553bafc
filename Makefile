# Everything happens in ./.venv, which the first target that needs it creates.
# Needed on the machine: Python >= 3.11, pip and make. Another Python: make test PYTHON=python3.13

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup test coverage test-slow test-arithmetic test-bounds demo lint format types bench bench-exact-peers docs wheel clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       solve, certify, compare and report, on embedded data (under a minute)"
	@echo "make test       the test suite (four minutes of CPU time on two workers, compiling included)"
	@echo "make test-slow  the tests that take longer: pages, examples, many random problems"
	@echo "make test-arithmetic  the numerical core as an older processor would compute it"
	@echo "make test-bounds      the kernels with every index checked"
	@echo "make coverage   branch coverage of the library by the test suite"
	@echo "make lint       ruff: rules and format"
	@echo "make types      pyright, and the share of public names with complete types"
	@echo "make bench      the benchmarks"
	@echo "make bench-exact-peers  the packages beside which benchmarks/bench_exact.py measures, in .peers"
	@echo "make docs       the documentation, in docs/_build/html (a minute and a half of work, 20 s when the examples have not changed)"
	@echo "make wheel      the package to install elsewhere, in dist"
	@echo "make clean      remove everything that was made here, .venv included"

setup: $(STAMP)

# groups of dependencies are read by pip 25.1 and newer
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "blockl0 needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev -e .
	@touch $@

# two workers and one thread in each: more threads than cores would only get in each other's way;
# a file stays with one worker, which makes its expensive fixtures once
test test-slow: export OMP_NUM_THREADS ?= 1

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

# Sums come out in another order on another processor. This one is made to compute as an old one
# does, without its vector instructions in NumPy, in the BLAS, in the C library and in the compiled
# kernels, and with sums split between two threads: a test must not hang on the last bits.
CORE := tests/test_block_search.py tests/test_kernels.py tests/exact/test_exact.py tests/search/test_refit.py \
  tests/certify/test_certificate.py tests/estimators/test_estimators.py tests/test_path.py tests/test_properties.py

test-arithmetic: export OPENBLAS_CORETYPE := Nehalem
test-arithmetic: export GLIBC_TUNABLES := glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-FMA,-FMA4
test-arithmetic: export NUMBA_CPU_NAME := generic
test-arithmetic: export NUMBA_CACHE_DIR := $(CURDIR)/$(VENV)/numba-generic
test-arithmetic: export OMP_NUM_THREADS := 2
test-arithmetic: $(STAMP)
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c '$(FEATURES)')" \
	  $(BIN)/python -m pytest -n 2 -m "not slow" $(CORE)

# the names differ between releases of NumPy, which knows its own
FEATURES := import numpy; print(*numpy.show_config("dicts")["SIMD Extensions"].get("found", ()))

# A compiled kernel reads and writes past the end of an array without a word. Compiled once more
# with every index checked, into a cache of its own, it raises IndexError.
KERNELS := tests/test_kernels.py tests/test_block_search.py tests/exact/test_exact.py \
  tests/certify/test_certificate.py tests/search/test_refit.py tests/search/test_annealing.py tests/moves/test_single.py tests/problem/test_structure.py

test-bounds: export NUMBA_BOUNDSCHECK := 1
test-bounds: export NUMBA_CACHE_DIR := $(CURDIR)/$(VENV)/numba-bounds
test-bounds: export OMP_NUM_THREADS ?= 1
test-bounds: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m "not slow" $(KERNELS)
	$(BIN)/python tests/run_hostile.py entries --problems 1000 --jobs 2

demo: $(STAMP)
	$(BIN)/python examples/demo.py

# kernels.py is compiled, so that coverage cannot see its lines, and is left out
coverage: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" --cov --cov-report= -q
	$(BIN)/python -m coverage report --skip-covered --sort=cover | tail -60

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python tools/measure_house.py --types 0.91

bench: $(STAMP)
	@set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file; done

bench-exact-peers:
	benchmarks/exact_peers/setup $(PYTHON)

# The examples are run for their output; without that: make docs SPHINXOPTS='-D run_examples=0'
SPHINXOPTS ?=

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -d docs/_build/doctrees $(SPHINXOPTS) docs docs/_build/html
	@echo "The documentation is docs/_build/html/index.html"

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs -e .
	@touch $@

wheel: $(STAMP)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) .peers build dist demo_output docs/_build docs/gallery docs/reference .pytest_cache .ruff_cache .hypothesis
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
