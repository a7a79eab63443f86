# `make demo` and `make test` are all a reader needs: each makes the environment it wants by itself.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo docs test test-all test-clusters test-page browser page pictures fuzz lint types bench clean help

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit("jointwise needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'
	touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(PIP) install --editable '.[demo]'
	touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	$(PIP) install --editable '.[demo]' --group test
	touch $@

$(VENV)/.clusters: $(VENV)/.test
	$(PIP) install --editable '.[demo]' --group clusters
	touch $@

$(VENV)/.docs: $(VENV)/.made pyproject.toml
	$(PIP) install --editable '.[demo]' --group docs
	touch $@

$(VENV)/.page: $(VENV)/.test
	$(PIP) install --editable '.[demo]' --group page
	touch $@

demo: $(VENV)/.demo  ## fit a table, ask it questions, draw one figure
	$(BIN)/python examples/demo.py

lint: $(VENV)/.test  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test  ## mypy, strict
	$(BIN)/mypy

# two processes share the cores, so that each needs but one thread for its algebra
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

test: lint types  ## lint, types, doctests and the quick tests
	$(ONE_THREAD) $(BIN)/pytest -n 2 -m "not slow and not clusters and not page"

test-all: lint types  ## the same with the slow statistical tests
	$(ONE_THREAD) $(BIN)/pytest -n 2 -m "not clusters and not page"

test-clusters: $(VENV)/.clusters  ## tables in Spark, DuckDB and a Dask cluster, whose workers are killed
	$(ONE_THREAD) $(BIN)/pytest -m clusters tests

# Node and Debian's Chromium are not needed by anything else; what is not there is skipped, and the reason is shown
browser:
	@{ command -v chromium && command -v chromedriver; } >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	echo "No chromium and chromedriver here, and they cannot be installed: tests in a browser are skipped."

test-page: $(VENV)/.page browser  ## the page of `jointwise explore`: its own tests, its answers beside Python's, a browser
	$(ONE_THREAD) $(BIN)/pytest -m page -rs tests/explore

page:  ## build the script and the style of the page into the package
	cd web && npm ci && npm run format && npm run build

pictures: $(VENV)/.page browser  ## pictures of the page for README and docs
	$(BIN)/python -m tests.explore.pictures

SECONDS ?= 1200

fuzz: $(VENV)/.test  ## hostile inputs for 20 minutes, or as long as SECONDS=60 says
	$(ONE_THREAD) $(BIN)/python -m tests.fuzz --seconds $(SECONDS)

GALLERY ?= full

docs: $(VENV)/.docs  ## the site, in site/; GALLERY=quick runs a few scripts of its gallery
	rm -rf docs/api
	GALLERY=$(GALLERY) $(ONE_THREAD) $(BIN)/sphinx-build -W --keep-going -q -d build/docs docs site
	$(BIN)/python docs/_ext/links.py site
	@echo "Open site/index.html"

bench: $(VENV)/.test  ## benchmarks, such as `make bench NAME=accuracy`
	$(BIN)/python -m benchmarks $(NAME)

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site docs/api docs/gallery
