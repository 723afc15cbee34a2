# One verb a line; `make` alone lists them. Everything installs into .venv, and nothing outside this folder is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
# Compile what is imported, whatever the user's shell says: PySpark starts about ten Python processes for every query.
unexport PYTHONDONTWRITEBYTECODE
unexport PYTHONPATH PYTHONHOME

# The tests' files stay in build/tests until the next run, and not in the system's temporary folder.
# Four at a time on two cores, since they wait for servers, browsers and pipelines.
# A test that hangs fails after 25 minutes, with its name, instead of holding up the whole run.
PYTEST = mkdir -p build && $(BIN)/python -m pytest -n $(or $(SIDE_BY_SIDE),4) --dist loadscope --no-loadscope-reorder --nbval-lax --nbval-cell-timeout=1200 --timeout=1500 --basetemp=build/tests
BESIDE := $(MAKE) --no-print-directory --jobs 2

.DEFAULT_GOAL := help
.PHONY: help install java archive demo test test-all test-slow systems sinks bench lab lock lint notebooks notebooks-check site simulators lite lite-check docs stills clean doctor ci

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: install java ## install what is missing (first time: one or two minutes), then crash a real Spark job and judge it
	@$(BIN)/labkit demo

test: install java notebooks-check ## lint, type-check and test, without what is slow (about eight minutes on two cores)
	@$(BESIDE) lint archive
	@$(PYTEST) -m "not slow" tests checked

test-all: install java notebooks-check ## the same and all slow tests, and nbval on every notebook
	@$(BESIDE) lint archive
	@$(PYTEST) tests checked

# Without nbval on the slow notebooks: tests/jupyter/test_course.py runs them in JupyterLab, and compares the same outputs.
test-slow: install java archive notebooks-check ## the slow tests, but for variants: further samples of what others show
	@$(PYTEST) -m "slow and not variant" tests

# Campaigns: not part of `make test-all`, see CONTRIBUTING.md. Most of these need jars and environments of their own, which are fetched once.
systems: install java ## list real systems, or crash some and compare: make systems ONLY=dlt (or pipelines, or all); fetches what they need
	@$(BIN)/python tools/pipelines.py $(if $(ONLY),$(ONLY) --compare) $(OPTIONS)

sinks: install java ## crash the sample sinks, e.g. make sinks ONLY=wrong_append,right_marker OPTIONS=--whole (all: a quarter of an hour)
	@$(BIN)/python tools/sinks.py $(or $(ONLY),all) $(OPTIONS)

# Tests start Spark some forty times. Without an archive everything works, only slower; so nothing here fails.
archive: install java
	@echo "class-data archive for faster starts of Spark (the first time: half a minute)"
	@$(BIN)/labkit doctor --prepare >/dev/null || true

lab: install java ## open JupyterLab on the first notebook
	@$(BIN)/labkit lab notebooks

doctor: install ## look at this machine: Java, memory, disk, ports, folders
	@$(BIN)/labkit doctor

bench: install java ## measure this machine, e.g. make bench ONLY="crash explore" ROUNDS=3; STORE, WORDS, STATES, JSON=1 (see python -m bench --help)
	@$(BIN)/python -m bench $(ONLY:%=--only %) $(ROUNDS:%=--rounds %) $(STORE:%=--store %) $(WORDS:%=--words %) $(STATES:%=--states %) $(if $(JSON),--json)

lint: install ## ruff and mypy
	@echo "ruff and mypy"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

notebooks: install ## build notebooks/*.ipynb from notebooks/src
	@$(BIN)/python tools/build_notebooks.py

notebooks-check: install
	@$(BIN)/python tools/build_notebooks.py --check

site: install java ## run every notebook and write build/site, pages that need no network (about ten minutes)
	@$(BIN)/python tools/build_site.py

simulators: install ## write the simulators as pages in which a browser runs them, build/site/simulators (half a minute; fetches Pyodide once, by npm)
	@$(BIN)/python tools/build_site.py --simulators

lite: install ## write the notebooks that a browser runs without an installation, build/site/lite (a minute; fetches JupyterLite once)
	@$(BIN)/python tools/build_site.py --lite

lite-check: install ## run every notebook of build/site/lite in a browser, e.g. make lite-check ONLY="01_guarantees 02_delivery"
	@$(BIN)/python tools/lite_check.py $(ONLY)

docs: install ## build the documentation into build/docs: offline, with search; a broken link fails
	@$(BIN)/python tools/build_docs.py

stills: install ## draw the README's pictures anew (docs/*.svg)
	@$(BIN)/python tools/build_pictures.py --stills

lock: install ## write every lock anew: requirements*.lock from pyproject.toml, the others from the .in files beside them
	$(COMPILE) --extra dev pyproject.toml -o requirements.lock
	$(COMPILE) --group java -o requirements-java.lock
	cd data/pipelines/environments && for name in lakes recipes spark41 bytewax dbos dlt faust langgraph pathway prefect quix stores; do $(COMPILE) --no-config $$name.in -o $$name.lock; done
	cd data/pipelines/environments && $(COMPILE) --no-config --no-deps flink.in -o flink.lock
	cd tools/site/lite && $(COMPILE) --no-config site.in -o site.lock
	cd tools/site/lite && $(COMPILE:3.11=3.14) --no-config --no-deps kernel.in -o kernel.lock

COMPILE := $(CURDIR)/$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --python-version 3.11 --custom-compile-command "make lock"

ci: ## what the continuous integration runs
	@bash .ci/run

clean: ## remove everything that is built, the environment too
	rm -rf $(VENV) build dist checked runs notebooks/runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find labkit tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +

install: $(STAMP)

$(STAMP): requirements.lock requirements-java.lock pyproject.toml tools/install.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "The lab needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing): install one, or name one: make demo PYTHON=python3.12"; exit 69; }
	@$(PYTHON) tools/install.py

java: install
	@$(BIN)/python tools/install.py --java
