# Everything runs in environments under .venv/ that these targets make; nothing
# but Python 3 and make has to be there before.
#
#   make demo       train the digits classifier in both loops
#   make test       lint, docs, then all tests on TF 2.15.1 and on the newest TF
#   make test-all   all tests on both, for hours; before a release
#   make test-fast  the tests for daily work: newest TF, one Keras, no processes
#   make test-versions  a part of the tests on every TensorFlow from 2.16 on
#   make proof      public code bases through hookbridge (PROOF_FLAGS=NAME)
#   make fuzz       an hour of random lists of guests in both loops (FUZZ_FLAGS)
#   make lint       ruff, mypy and the import contracts
#   make docs       the documentation site, built strictly into build/site
#   make reference  the pages of docs/reference from the docstrings
#   make notebooks  what the notebooks of the examples print, into them
#   make release    build and check the packages, and try the wheel on both TFs
#   make clean      remove the environments and what was built
#
# DEMO_FLAGS="--epochs=3" and PYTEST_FLAGS="tests/adapters -x" are passed on;
# PYTHON_215 and PYTHON_NEWEST name the Pythons to use instead of the ones found.

.PHONY: help demo environments test test-newest test-215 test-all test-fast test-versions proof fuzz lint docs reference notebooks release packages try-newest try-215 clean
.DEFAULT_GOAL := help

DEMO := .venv/demo
NEWEST := .venv/newest
TF215 := .venv/tf215
PACKAGING := setup.py pyproject.toml
# pip would compile all of TensorFlow and its needs. What tests import is compiled once,
# when an environment is ready; otherwise each of their workers would do it.
PIP_FLAGS := --quiet --disable-pip-version-check --no-compile
DEMO_FLAGS ?=
PYTEST_FLAGS ?= -q
FUZZ_FLAGS ?= --secs=3600
PROOF_FLAGS ?= --help
VERSIONS_FLAGS ?=

# TF 2.15.1 exists for Python 3.9 to 3.11, TF 2.21 for 3.10 to 3.13, TF 2.22 for 3.14
# too. With the first choices all rows of tests have a final TensorFlow.
ifndef PYTHON_215
PYTHON_215 := $(shell .ci/find_python.sh 3.10 3.11 2>/dev/null)
endif
ifndef PYTHON_NEWEST
PYTHON_NEWEST := $(shell .ci/find_python.sh 3.13 3.12 3.11 3.10 3.14 2>/dev/null)
endif

export TF_CPP_MIN_LOG_LEVEL := 3
# Thousands of processes import the same modules: without caches each compiles them.
export PYTHONDONTWRITEBYTECODE :=
# For each operation of a graph, oneDNN asks all kernels of TensorFlow whether one is its
# own, which takes long where tests make new graphs. `make test-all` has oneDNN.
TF_ENABLE_ONEDNN_OPTS ?= 0
test-newest test-215 test-fast: export TF_ENABLE_ONEDNN_OPTS := $(TF_ENABLE_ONEDNN_OPTS)

help:
	@sed -n 's/^#   //p' Makefile

demo: $(DEMO)/.installed
	$(DEMO)/bin/python -m hookbridge demo $(DEMO_FLAGS)
	@echo "Next: '$(DEMO)/bin/hookbridge docs quickstart' shows both directions in a"
	@echo "program of your own."

# Differences are printed as short programs; 30 seconds of the same are in `make test`.
fuzz: $(NEWEST)/.installed
	cd tests && PYTHONPATH=..:helpers:adapters/helpers:differential \
	    ../$(NEWEST)/bin/python differential/fuzz.py $(FUZZ_FLAGS)

# What each code base gave is in docs/proof.md.
proof: $(NEWEST)/.installed
	$(NEWEST)/bin/python -m tests.proof $(PROOF_FLAGS)

lint: $(NEWEST)/.installed
	$(NEWEST)/bin/ruff check .
	$(NEWEST)/bin/ruff format --check .
	$(NEWEST)/bin/mypy hookbridge tests benchmarks
	$(NEWEST)/bin/lint-imports --no-cache

# Runs the notebooks of the examples; what they print is written into them.
notebooks: $(NEWEST)/.installed
	$(NEWEST)/bin/python .ci/notebooks.py

reference: $(NEWEST)/.installed
	$(NEWEST)/bin/python .ci/reference_pages.py

# Not `--quiet`: it drops the warnings that `--strict` counts, dead anchors among them.
docs: $(NEWEST)/.installed
	NO_MKDOCS_2_WARNING=1 $(NEWEST)/bin/mkdocs build --strict

# How many workers `-n auto` is: see tests/helpers/files_to_workers.py.
PYTEST := -m pytest -n auto

test: lint docs test-newest test-215

test-newest: $(NEWEST)/.installed
	$(NEWEST)/bin/python $(PYTEST) $(PYTEST_FLAGS)

ifneq ($(PYTHON_215),)
test-215: $(TF215)/.installed
	$(TF215)/bin/python $(PYTEST) $(PYTEST_FLAGS)
else
test-215:
	@echo "TF 2.15.1 needs Python 3.10 or 3.11 and none was found here:"
	@echo "the newest TF alone is tested. PYTHON_215=/path/to/python names one."
	@if [ "$(CI)" = true ]; then echo "In CI this is a failure."; exit 1; fi
endif

test-all:
	$(MAKE) test TF_ENABLE_ONEDNN_OPTS=1 PYTEST_FLAGS="--all $(PYTEST_FLAGS)"

test-fast: $(NEWEST)/.installed
	$(NEWEST)/bin/python $(PYTEST) --fast $(PYTEST_FLAGS)

# Writes docs/versions.md.
test-versions: $(NEWEST)/.installed
	$(NEWEST)/bin/python .ci/versions.py $(VERSIONS_FLAGS)

release: packages try-newest $(if $(PYTHON_215),try-215)

packages: $(NEWEST)/.installed
	rm -rf build/lib dist
	$(NEWEST)/bin/python -m build --no-isolation --outdir dist .
	$(NEWEST)/bin/twine check --strict dist/*

try-newest: packages
	.ci/try_wheel.sh "$(PYTHON_NEWEST)" tensorflow

# The wheel goes into an empty environment, which sees the packages of another one.
try-215: packages $(TF215)/.installed
	.ci/try_wheel.sh "$(PYTHON_215)" tensorflow==2.15.1 $(TF215)

# What the demo needs and no more; pip shows how far it is.
$(DEMO)/.installed: $(PACKAGING)
	@if [ -z "$(PYTHON_NEWEST)" ]; then \
	    echo "No working Python 3.10 to 3.14 with venv and pip was found"; \
	    echo "(on Debian and Ubuntu: apt install python3-venv)."; \
	    exit 1; \
	fi
	"$(PYTHON_NEWEST)" -m venv --clear $(DEMO)
	$(DEMO)/bin/python -m pip install --disable-pip-version-check --editable \
	    ".[tensorflow,tensorboard]"
	@touch $@

$(NEWEST)/.installed: $(PACKAGING)
	@if [ -z "$(PYTHON_NEWEST)" ]; then \
	    echo "No working Python 3.10 to 3.14 with venv and pip was found"; \
	    echo "(on Debian and Ubuntu: apt install python3-venv)."; \
	    exit 1; \
	fi
	@echo "Installing the newest TensorFlow into $(NEWEST); takes minutes once."
	"$(PYTHON_NEWEST)" -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -m pip install $(PIP_FLAGS) --editable \
	    ".[tensorflow,test,lint,docs,release,estimator,contrib]"
	$(NEWEST)/bin/python -m pip install $(PIP_FLAGS) --no-deps tf_keras
	$(NEWEST)/bin/python -c "import tensorflow, tf_keras"
	@touch $@

# TF 2.15 has its own Estimator and its own Keras 2: it takes no extra for them.
$(TF215)/.installed: $(PACKAGING)
	@echo "Installing TensorFlow 2.15.1 into $(TF215); takes minutes once."
	"$(PYTHON_215)" -m venv --clear $(TF215)
	$(TF215)/bin/python -m pip install $(PIP_FLAGS) --editable \
	    ".[test,contrib]" "tensorflow==2.15.1"
	$(TF215)/bin/python -c "import tensorflow, keras"
	@touch $@

environments: $(NEWEST)/.installed $(if $(PYTHON_215),$(TF215)/.installed)

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
