# The words people and .ci/run use. Each target installs what it needs into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all check format bench peers docs clean

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
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-all: $(VENV)/dev  ## everything
	$(BIN)/pytest -n 2 --dist worksteal

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

$(VENV)-peers/installed: benchmarks/peers_requirements.txt
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(VENV)-peers/bin/pip install --quiet --disable-pip-version-check -r benchmarks/peers_requirements.txt
	$(VENV)-peers/bin/pip install --quiet --disable-pip-version-check --no-deps privacyguard-platform==0.0.2
	touch $@

peers: $(VENV)/dev $(VENV)-peers/installed  ## attacks side by side with those of other libraries; a quarter of an hour
	$(BIN)/python benchmarks/peers.py --python $(VENV)-peers/bin/python

docs: $(VENV)/dev  ## the reference pages, made from the code
	$(BIN)/python docs/make_reference.py

clean:
	rm -rf $(VENV) $(VENV)-peers build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
