# Two commands on a fresh machine with Python 3.11+ and make: `make webshop` (or `alfworld`, `deepsearch`, `ablation`) and `make test`.

PYTHON   ?= python3
PIP_ARGS ?=
SUITE    ?= webshop
SCALE    ?= default
SEEDS    ?= 1
DATA     ?=
GOLDEN   ?=
GAMES    ?=
SEED     ?= 0
SHARD    ?= 1/1
JOBS     ?=
RETRIEVER ?=
RESULTS  ?= results

# Threads that wait must not spin: on a busy machine that costs a factor of five and more.
export OMP_WAIT_POLICY ?= PASSIVE

VENV := .venv
BIN  := $(VENV)/bin
SEARCH  = $(if $(RETRIEVER),--retriever '$(RETRIEVER)')
CHOICES = --scale $(SCALE) --results '$(RESULTS)' $(if $(DATA),--data '$(DATA)')

.DEFAULT_GOAL := help
.PHONY: help setup webshop alfworld deepsearch ablation serve browser test data-webshop data-alfworld data-deepsearch parity-webshop parity-alfworld warm-start bench report clean

help:  ## list the targets and their variables
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17
	@echo
	@echo "variables: SCALE=default|smoke  SEEDS=1  DATA=folder of official files  JOBS=runs at a time"
	@echo "           RESULTS=results  PYTHON=python3  PIP_ARGS='options for pip install'"

setup: $(VENV)/installed  ## create .venv with the tested versions (the other targets do it by themselves)

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(PIP_ARGS) -c constraints.txt torch
	$(BIN)/pip install --quiet $(PIP_ARGS) -c constraints.txt -e '.[dev]'
	touch $@

# Its planner is compiled, which takes minutes and a C++ compiler; only tests and parity-alfworld want it.
$(VENV)/official: $(VENV)/installed
	@echo 'installing the official ALFWorld engine, to compare with: minutes, once'
	$(BIN)/pip install --quiet $(PIP_ARGS) -c constraints.txt -e '.[alfworld]' || \
	    echo 'NOT INSTALLED: the official ALFWorld engine; tests that compare with it will be skipped'
	touch $@

webshop: setup  ## train and evaluate all four variants, then the table and the figures
	$(BIN)/python -m benchmarks run webshop $(CHOICES) --seeds $(SEEDS) $(if $(JOBS),--jobs $(JOBS))

alfworld: setup  ## the same on ALFWorld
	$(BIN)/python -m benchmarks run alfworld $(CHOICES) --seeds $(SEEDS) $(if $(JOBS),--jobs $(JOBS))

deepsearch: setup  ## the same on Deep Search: RETRIEVER=bm25|dense:MODEL|URL of a server
	$(BIN)/python -m benchmarks run deepsearch $(CHOICES) --seeds $(SEEDS) $(if $(JOBS),--jobs $(JOBS)) $(SEARCH)

ablation: setup  ## Deep Search: what each part of EMPG adds to DAPO, in domain and out of domain
	$(BIN)/python -m benchmarks run ablation $(CHOICES) --seeds $(SEEDS) $(if $(JOBS),--jobs $(JOBS)) $(SEARCH)

serve: setup  ## serve the passages of Deep Search to many workers: DATA=, RETRIEVER=
	$(BIN)/python -m benchmarks serve --results '$(RESULTS)' $(if $(DATA),--data '$(DATA)') $(SEARCH)

# Playwright's own download is not to be had everywhere; the system's browser is.
browser:  ## install a headless browser for the tests of the page, where apt-get can
	@for name in "$$EMPG_CHROMIUM" chromium chromium-browser google-chrome google-chrome-stable; do \
	    command -v "$$name" >/dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; then exit 0; fi; \
	echo 'NOT INSTALLED: a browser; the tests of the page will be skipped.' \
	    'Install Chromium by hand, or name one in EMPG_CHROMIUM.' >&2; exit 1

test: export OMP_NUM_THREADS = 1
test: setup $(VENV)/official  ## format, lint, types and all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest $(PYTEST_ARGS)

parity-webshop: setup  ## replay transcripts of the official environment: GOLDEN=folder, their data in or above it or in DATA
	$(BIN)/python -m benchmarks parity webshop '$(GOLDEN)' $(if $(DATA),--data '$(DATA)')

parity-alfworld: setup $(VENV)/official  ## play the official games in DATA by both engines: GAMES=n, SEED=0, SHARD=i/n
	$(BIN)/python -m benchmarks parity alfworld --results '$(RESULTS)' $(if $(DATA),--data '$(DATA)') \
	    $(if $(GAMES),--games $(GAMES)) --seed $(SEED) --shard $(SHARD)

warm-start: setup  ## teach the shipped warm-start policy of a suite again
	$(BIN)/python -m benchmarks warm-start $(SUITE) --scale $(SCALE)

data-webshop: setup  ## check the official files in DATA and prepare them for all runs
	$(BIN)/python -m benchmarks data webshop $(CHOICES)

data-alfworld: setup  ## check the official games in DATA
	$(BIN)/python -m benchmarks data alfworld $(CHOICES)

data-deepsearch: setup  ## check the corpus and the questions in DATA and index them for all runs
	$(BIN)/python -m benchmarks data deepsearch $(CHOICES)

bench: setup  ## measure speed and memory ratios on this machine
	$(BIN)/python -m benchmarks bench $(if $(DATA),--data '$(DATA)')

report: setup  ## rebuild table and figures from the run records
	$(BIN)/python -m benchmarks report $(SUITE) $(CHOICES)

clean:  ## remove the virtual environment and caches; keeps results
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
