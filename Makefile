# The commands of this repository; `make help` lists them.

PYTHON ?= python3
# Debian packages that tests need. `make test` installs those that are missing when it may.
DEBIAN_PACKAGES = postgresql strace
LOCK_FLAGS ?=
AUDIT_FLAGS ?=

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo test lint types imports tests packages claims audit bench format lock clean

help:  ## List the commands
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

demo: $(READY)  ## Publish a private model of the bundled survey, and answer 100,000 questions
	@$(BIN)/cumae demo

# Checking types takes a core for a minute, so the tests start beside it.
test: lint imports  ## Run every check and test
	@$(MAKE) --no-print-directory -j types tests

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

# Two halves side by side, one for each of two cores. The coverage data lies in a directory of its
# own, so that runs beside each other do not mix.
HALF := tests/unit/test_data_*.py tests/unit/test_ensembles_*.py \
  tests/unit/test_learners_*.py tests/unit/test_predictors_*.py tests/unit/test_store_*.py \
  docs README.md
tests: $(READY) packages
	scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; export COVERAGE_FILE="$$scratch/coverage"; \
	run="$(BIN)/pytest --cov --cov-report= --cov-fail-under=0"; \
	COVERAGE_FILE="$$scratch/coverage.1" $$run $(HALF) > "$$scratch/half" 2>&1 & half=$$!; rest=0; \
	COVERAGE_FILE="$$scratch/coverage.2" $$run tests src \
	  $(foreach pattern,$(filter tests/%,$(HALF)),--ignore-glob='$(pattern)') || rest=$$?; \
	wait $$half || { cat "$$scratch/half"; exit 1; }; cat "$$scratch/half"; test $$rest = 0; \
	$(BIN)/coverage combine --quiet; $(BIN)/coverage report

packages: $(READY)
	@$(BIN)/python tools/debian_packages.py --record .venv/debian-packages.json $(DEBIAN_PACKAGES)

claims: $(READY)  ## Accept the claimed code as it stands: you have read its proofs again
	$(BIN)/python tools/claims.py accept

audit: $(READY)  ## Attack everything that promises privacy, and hold what leaks against the promise
	$(BIN)/pytest -m audit tests/unit
	$(BIN)/python benchmarks/audit.py --again $(AUDIT_FLAGS)

bench: $(READY)  ## Run all benchmarks, and install the peers that they compare with
	$(BIN)/pip install --quiet -r benchmarks/requirements.txt
	for script in benchmarks/[!_]*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

format: $(READY)  ## Format the code and apply the safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock:  ## Write requirements.lock anew (LOCK_FLAGS=--upgrade for newer versions)
	scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(PYTHON) -m venv "$$scratch"; "$$scratch/bin/pip" install --quiet uv; \
	"$$scratch/bin/uv" pip compile --quiet pyproject.toml --group test --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header --no-annotate $(LOCK_FLAGS) \
	  --output-file requirements.lock

clean:  ## Remove the environment and everything that was generated
	rm -rf .venv .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache dist build
	rm -rf .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml
	@PYTHON="$(PYTHON)" tools/make_environment
