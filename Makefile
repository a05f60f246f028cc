# Each target sets up what it needs by itself, in .venv. Needs Python 3.11 or newer, pip and make.
.DEFAULT_GOAL := help
.PHONY: help run test test-vllm lint typecheck bench bench-peers bench-engines bench-pages screenshots lock clean

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name))))
# Without the compiled modules that Python keeps, every process of a stack would compile 1,500 of them anew: 4 s of a processor.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
INSTALL := $(PYTHON) deploy/install.py

ENGINES ?= speech,diffusers,workflow,vllm,upstream
DATA ?= data
PORT ?= 8080
TESTS ?= tests
WORKERS ?= 2
ROWS ?= 10000000
# pytest's exit code when TESTS= leaves nothing to run
NONE_CHOSEN := [ $$? -eq 5 ]

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Start everything: ENGINES=speech,diffusers,workflow,vllm,upstream DATA=data PORT=8080
	@$(INSTALL) run
ifneq (,$(findstring vllm,$(ENGINES)))
	@$(INSTALL) vllm || true
endif
ifneq (,$(findstring diffusers,$(ENGINES)))
	@$(INSTALL) diffusers || true
endif
	@exec $(BIN)/faregate up --data $(DATA) --port $(PORT) --engines $(ENGINES)

test: ## Run all tests but those of vLLM: TESTS=tests WORKERS=2
	@$(INSTALL) test
	@$(INSTALL) diffusers
	@failed=0; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not vllm and not chaos" $(TESTS) || $(NONE_CHOSEN) || failed=1; \
	$(BIN)/python -m pytest -m "chaos and not vllm" $(TESTS) || $(NONE_CHOSEN) || failed=1; \
	exit $$failed

test-vllm: ## Run the tests of the real vLLM, installed first
	@$(INSTALL) test
	@$(INSTALL) vllm
	@$(BIN)/python -m pytest -m vllm $(TESTS) || $(NONE_CHOSEN)

lint: ## Check style, formatting and layers
	@$(INSTALL) test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

typecheck: ## Check the types of gateway and workers, strictly
	@$(INSTALL) test
	@$(BIN)/mypy

bench: ## Measure requests per second, CPU and latency; prints a table
	@$(INSTALL) test
	@$(BIN)/python -m bench

bench-peers: ## The same beside LiteLLM's proxy, which is installed first
	@$(INSTALL) test
	@$(BIN)/python -m bench --peers

bench-engines: ## What the worker adds to bare vLLM and diffusers, side by side
	@$(INSTALL) test
	@$(INSTALL) diffusers
	@$(INSTALL) vllm
	@$(BIN)/python -m bench.engines

screenshots: ## Draw every page of the dashboard, light and dark, into docs/screenshots: PAGES="overview books"
	@$(INSTALL) test
	@$(BIN)/python -m tests.browser.pictures $(PAGES)

bench-pages: ## How long pages and reports take over ROWS=10000000 finished requests
	@$(INSTALL) test
	@$(BIN)/python -m bench.pages --rows $(ROWS)

lock: ## Resolve constraints.txt and its like anew
	@$(INSTALL) test
	@$(BIN)/python deploy/lock.py

clean: ## Remove what was installed and built, not the data
	rm -rf .venv build dist gateway/admin/static .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
