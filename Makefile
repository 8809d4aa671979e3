# The words people and .ci/run use. Each target installs what it needs into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all check format bench docs clean

$(VENV)/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/dev: $(VENV)/core
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(VENV)/core  ## audit a built-in table; a refusal (status 1) is the expected answer
	$(BIN)/reticent audit --out build/demo; test $$? -eq 1

test: $(VENV)/dev  ## everything but the slow tests
	$(BIN)/pytest -n 2 -m "not slow"

test-all: $(VENV)/dev  ## everything
	$(BIN)/pytest -n 2

check: $(VENV)/dev  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/dev  ## ratios measured in one run; benchmarks/RESULTS.md keeps them
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/dev  ## the reference pages, made from the code
	$(BIN)/python docs/make_reference.py

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
