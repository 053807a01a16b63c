# make demo and make test install everything they need; python3 (3.11 or newer) and make are required.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
export NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba
export PIP_DISABLE_PIP_VERSION_CHECK = 1
unexport PYTHONDONTWRITEBYTECODE  # every process that a test starts would compile two hundred modules

.PHONY: setup setup-spark demo system test test-long mutants bench docs docs-reference docs-pictures messages clean

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Discreet needs Python 3.11 or newer; set PYTHON=/path/to/it" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps -e .
	touch $@

$(VENV)/.installed-dev: requirements-dev.lock requirements-spark.lock $(VENV)/.installed
	$(BIN)/python -m pip install -q -r requirements-dev.lock
	$(BIN)/python -m pip install -q --require-hashes -r requirements-spark.lock
	touch $@

$(VENV)-docs/.installed: requirements-docs.lock
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install -q -r requirements-docs.lock
	touch $@

setup: $(VENV)/.installed

# Adds Spark to the environment; it runs on Java 17 or newer.
setup-spark: $(VENV)/.installed
	$(BIN)/python -m pip install -q --require-hashes -r requirements-spark.lock
	@$(BIN)/python -c 'from discreet.engine.session import require_spark; require_spark()' 2>&1 | tail -1

demo: $(VENV)/.installed
	$(BIN)/discreet demo --out demo

# Installs a browser, a database server and Java for the tests, if apt is available.
system:
	.ci/system-packages

test: $(VENV)/.installed-dev system docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n 4 --dist worksteal  # more threads would wait for each other

test-long: $(VENV)/.installed-dev
	$(BIN)/pytest -q -m long --seed random

# MODULE=discreet.maths.keys TESTS=tests/maths/test_keys.py; see docs/contribute/mutation-testing.md
mutants: $(VENV)/.installed-dev
	$(BIN)/python -m pip install -q cosmic-ray==8.7.0
	$(BIN)/python -m tests.mutation $(MODULE) $(TESTS)

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

# The site, with warnings as errors; it needs no network afterwards.
docs: $(VENV)-docs/.installed
	$(VENV)-docs/bin/sphinx-build -q -W --keep-going -b html docs build/docs
	@echo build/docs/index.html

# Generates the pages on commands, library and dependencies from the program.
docs-reference: $(VENV)/.installed
	$(BIN)/python docs/command_reference.py
	$(BIN)/python docs/api_reference.py
	$(BIN)/python docs/dependencies.py

# Takes the screenshots of the pages again; needs Chromium.
docs-pictures: $(VENV)/.installed-dev
	$(BIN)/python -m tools.pictures

# Adds the messages of the source to the catalogue of every language and compiles it.
messages: $(VENV)/.installed-dev
	$(BIN)/python -m tools.messages

clean:
	rm -rf $(VENV) $(VENV)-docs demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
