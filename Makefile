# The commands of this repository; `make help` lists them.

PYTHON ?= python3
# Debian packages that tests need. `make test` installs those that are missing when it may, and
# `make test PACKAGES=no` does not.
DEBIAN_PACKAGES = chromium openjdk-17-jre-headless postgresql strace systemd
PACKAGES ?= yes
LOCK_FLAGS ?=
AUDIT_FLAGS ?=
MATRIX_FLAGS ?=
WORKERS ?= logical

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# Without compiled modules every process that a test starts takes seconds longer.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
READY := .venv/.ready
ifeq ($(filter yes no,$(PACKAGES)),)
  $(error PACKAGES=$(PACKAGES): give yes to install Debian packages that are missing, or no)
endif

.PHONY: help demo quick test lint types imports clients engines quicktests tests coverage packages slow audit \
  bench site format lock matrix sbom licences clean

help:  ## List the commands
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

demo: $(READY)  ## Publish a private model of the bundled survey, answer 100,000 questions, and serve both
	@$(BIN)/cumae demo

# The short loop. It never installs system packages, not even for the environment.
quick:  ## Run the checks, and the tests that are not slow: two minutes
	@$(MAKE) --no-print-directory -j PACKAGES=no lint imports types quicktests

# Checking types takes a core for a minute, so the tests start beside it.
test: lint  ## Run every check and test (PACKAGES=no: without installing Debian packages)
	@$(MAKE) --no-print-directory -j imports types clients tests

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

# Inference clients, each in an environment of its own, for tests of the server. They are made once,
# beside other tests; those that need one wait for it.
clients: $(READY)
	$(BIN)/python -m tools.make_clients

# Ray and Spark, each beside the packages of the tests. Tests of those that are missing are skipped,
# and named at the end.
engines: $(READY) packages  ## Set up Ray and Spark for their tests
	$(BIN)/python -m tools.make_engines

# One process for each core (WORKERS) takes one file of tests after the other, so that what the tests
# of a file share is made once, and in the same order each time. Linear algebra gets one thread in
# each, because several that wait for the same core take longer. The coverage data lies in a
# directory of its own, so that runs beside each other do not mix.
PYTEST = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
  $(BIN)/pytest -n $(WORKERS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder
tests: $(READY) packages
	$(PYTEST)

# Tests are slow if tests/slow.txt lists them. Those that need a Debian package are left out as well.
# Tests that take long in spite of that are shown at the end.
quicktests: $(READY)
	$(PYTEST) -m "not audit and not slow and not debian" --durations 5 --durations-min 5

# Tracing takes longer than the tests themselves, so that `make test` goes without it.
coverage: $(READY) packages  ## Run the tests, and fail if they reach too few lines
	scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	COVERAGE_FILE="$$scratch/coverage" $(PYTEST) --cov

packages: $(READY)
	@$(BIN)/python tools/debian_packages.py --install $(PACKAGES) \
	  --record .venv/debian-packages.json $(DEBIAN_PACKAGES)

slow: $(READY) packages  ## Run all tests, and list anew which of them are slow
	$(PYTEST) --durations 0 | tee /dev/stderr | $(BIN)/python tools/slow_tests.py

audit: $(READY)  ## Attack everything that promises privacy, and hold what leaks against the promise
	$(BIN)/pytest -m audit tests/unit
	$(BIN)/python benchmarks/audit.py --again $(AUDIT_FLAGS)

bench: $(READY)  ## Run all benchmarks, and install the peers that they compare with
	$(BIN)/pip install --quiet -r benchmarks/requirements.txt
	for script in benchmarks/[!_]*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

# Warnings are errors: a page outside of the list, a link or an anchor that leads nowhere.
site: $(READY)  ## Build the site into the folder site; it needs no network, and no server
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open site/index.html."

format: $(READY)  ## Format the code and apply the safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Extras stay in the lock: without them pip looks for the newest version of a package that another
# one wants with an extra, and refuses it because its hash is not listed.
lock:  ## Write requirements.lock anew (LOCK_FLAGS=--upgrade for newer versions)
	scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(PYTHON) -m venv "$$scratch"; "$$scratch/bin/pip" install --quiet uv; \
	"$$scratch/bin/uv" pip compile --quiet pyproject.toml --group test --universal --python-version 3.11 \
	  --generate-hashes --no-strip-extras --no-emit-index-url --no-header --no-annotate $(LOCK_FLAGS) \
	  --output-file requirements.lock

# Environments are made once, in .venv/matrix. Name one to run it alone: MATRIX_FLAGS='--only 3.13'.
matrix: $(READY)  ## Test with each declared Python, and with the oldest dependencies
	$(BIN)/python tools/matrix.py $(MATRIX_FLAGS)

sbom: $(READY)  ## Write the bill of materials of an installed cumae (CycloneDX) into dist
	$(BIN)/python tools/components.py sbom --out dist/cumae.cdx.json

licences: $(READY)  ## Print the licence of each package that cumae uses; fail for one that does not fit
	$(BIN)/python tools/components.py licences

clean:  ## Remove the environment and everything that was generated
	rm -rf .venv .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache dist build demo
	rm -rf .import_linter_cache site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml
	@PYTHON="$(PYTHON)" PACKAGES="$(PACKAGES)" tools/make_environment
