# `make demo` and `make test` need python3 (with venv), make and git; a C compiler is used where there is one.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find agent protos collector dashboards -type f \
	-not -name '*.pyc' -not -name '*.so' -not -path '*/__pycache__*' 2>/dev/null)

.PHONY: help demo test lint protos clean

help: ## this list
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.installed ## measure this machine and show it; ONCE=1 ends after the table
	@$(BIN)/roof-collector demo --database sqlite:///.demo/roofline.sqlite $(if $(ONCE),--once)

test: $(VENV)/.test ## run the tests
	@$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.lint protos ## ruff, mypy, import contracts, protocol
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@cd protos && ../$(BIN)/buf lint

# The generator needs protobuf 5, so it lives in an environment of its own.
protos: $(VENV)-protos/.installed ## fail where the committed protobuf code isn't what the .proto files give
	@$(VENV)-protos/bin/python scripts/protos.py --check

bench-%: $(VENV)/.test ## a benchmark of benchmarks/: bench-peers, bench-counting, bench-ingest
	@$(BIN)/python benchmarks/$*.py $(ARGS)

clean: ## remove the environments and what was built
	rm -rf $(VENV) $(VENV)-protos build dist .demo

$(BIN)/python:
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.installed: $(SOURCES) | $(BIN)/python
	@echo 'installing roofline into $(VENV)'
	@$(BIN)/pip install --quiet '.[all]'
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	@$(BIN)/pip install --quiet --group test
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	@$(BIN)/pip install --quiet --group lint
	@touch $@

$(VENV)-protos/.installed: pyproject.toml
	@$(PYTHON) -m venv $(VENV)-protos
	@$(VENV)-protos/bin/pip install --quiet --upgrade 'pip>=25.1'
	@$(VENV)-protos/bin/pip install --quiet --group protos
	@touch $@
