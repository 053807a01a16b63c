# make demo and make test install everything they need; python3 (3.11 or newer) and make are required.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
unexport PYTHONDONTWRITEBYTECODE  # every process that a test starts would compile two hundred modules

.PHONY: setup setup-spark wheel demo system test ruff mypy tests test-long test-pythons mutants bench docs docs-reference docs-pictures messages clean

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Discreet needs Python 3.11 or newer; set PYTHON=/path/to/it" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps -e .
	touch $@

$(VENV)/.compiled: $(VENV)/.installed
	$(BIN)/discreet demo --quiet --persons 600000 --out $(VENV)/demo && rm -r $(VENV)/demo  # compiles the kernels, once
	touch $@

$(VENV)/.installed-dev: requirements-dev.lock requirements-spark.lock $(VENV)/.installed
	$(BIN)/python -m pip install -q -r requirements-dev.lock
	$(BIN)/python -m pip install -q --require-hashes -r requirements-spark.lock
	touch $@

$(VENV)-docs/.installed: requirements-docs.lock
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install -q -r requirements-docs.lock
	touch $@

setup: $(VENV)/.compiled

# Adds Spark to the environment; it runs on Java 17 or newer.
setup-spark: $(VENV)/.installed
	$(BIN)/python -m pip install -q --require-hashes -r requirements-spark.lock
	@$(BIN)/python -c 'from discreet.engine.session import require_spark; require_spark()' 2>&1 | tail -1

# Builds dist/discreet-*.whl, with the machine code that a first run needs.
wheel: $(VENV)/.installed-dev
	$(BIN)/python -m tools.wheel --out dist

demo: $(VENV)/.installed
	$(BIN)/discreet demo --out demo

# Installs a browser, a database server and Java for the tests, if apt is available.
system:
	.ci/system-packages

# All parts at once: while one waits for a file, a lock or a page, another one works. If one fails, make waits for those
# that have started, and fails.
test:
	$(MAKE) --no-print-directory -j tests docs ruff mypy

tests: $(VENV)/.installed-dev $(VENV)/.compiled system
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n 4  # more threads would wait for each other

ruff: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

mypy: $(VENV)/.installed-dev
	$(BIN)/mypy

test-long: $(VENV)/.installed-dev
	$(BIN)/pytest -q -m long --seed random

# Installs the lock files with each Python that there is, in an environment of its own, and runs a part of the tests.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
PYTHON_TESTS ?= tests/pipeline tests/maths/privacy tests/perturb tests/cli tests/api tests/release tests/formats tests/serve/http
test-pythons:
	@set -e; for python in $(PYTHONS); do \
	  command -v $$python >/dev/null || { echo "$$python: not found, not tested"; continue; }; \
	  venv=$(CURDIR)/$(VENV)-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  $$python -m venv $$venv; \
	  $$venv/bin/python -m pip install -q --require-hashes -r requirements.lock; \
	  $$venv/bin/python -m pip install -q -r requirements-dev.lock; \
	  $$venv/bin/python -m pip install -q --no-deps -e .; \
	  $$venv/bin/python --version; \
	  PATH=$$venv/bin:$$PATH $$venv/bin/python -m pytest -q -n 2 $(PYTHON_TESTS); \
	done

# MODULE=discreet.maths.keys TESTS=tests/maths/test_keys.py; see docs/contribute/mutation-testing.md
mutants: $(VENV)/.installed-dev
	$(BIN)/python -m pip install -q cosmic-ray==8.7.0
	$(BIN)/python -m tests.mutation $(MODULE) $(TESTS)

bench: $(VENV)/.installed-dev $(VENV)/.compiled
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
	rm -rf $(VENV) $(VENV)-* demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
