# The words people and .ci/run use. Each target installs what it needs into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# One or two files of each room, and one audit from end to end: what a version of a library or of Python could break.
QUICK := tests/data tests/policy tests/attack/test_attacks.py tests/cli/test_plan_cli.py tests/evidence/test_ltu.py tests/evidence/test_roc.py \
	tests/product/test_store.py tests/product/test_network_product.py tests/train/test_models.py tests/train/test_networks.py \
	tests/pipeline/test_audit.py::test_a_forest_that_overfits_is_refused

# Two processes, each a module at a time: what the tests of a module share is made once. tests/conftest.py puts the long ones first.
TWICE := -n 2 --dist loadscope --no-loadscope-reorder

# Tests start more than a hundred processes. Where the environment forbids bytecode, each of them compiles the whole package anew, a second every time:
# a seventh of the time of all tests.
test test-all test-lowest test-python: export PYTHONDONTWRITEBYTECODE =

# Share of lines, in percent, that the tests must reach. It is the figure of the day it was set, less two points, among others for tests that are skipped where
# there is no browser; a file whose lines no test runs brings it down. What tests start beside them (examples, workers) is not counted, so that
# it is a lower bound. SlipCover counts a line once and then takes its probe out; a tracer took a third of the time of every test.
FLOOR := 95
COUNTED := -m slipcover --source src/reticent --omit src/reticent/train/private/compiled.py --json --out build/lines.json

.PHONY: demo test test-all calibration test-lowest test-python check format bench peers docs clean

$(VENV)/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/dev: $(VENV)/core
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(VENV)/core  ## audit a built-in table; a refusal (status 1) is the expected answer
	$(BIN)/reticent audit --out build/demo; test $$? -eq 1

test: $(VENV)/dev  ## everything but the slow tests, with a coverage figure
	mkdir -p build
	$(BIN)/python $(COUNTED) -m pytest $(TWICE) -m "not slow" -W ignore::pytest.PytestAssertRewriteWarning
	$(BIN)/python tests/lines.py build/lines.json $(FLOOR)

# The slow tests of tests/calibration leave what they counted in build/calibration; the page is written from it, also if a test fails.
test-all: $(VENV)/dev  ## everything, and the page on error rates (docs/reference/calibration.md)
	rm -rf build/calibration
	$(BIN)/pytest $(TWICE); status=$$?; $(BIN)/python experiments/calibration/run.py --collect || exit 1; exit $$status

calibration: $(VENV)/dev  ## how often statements are wrong: the page on error rates alone; 30 CPU minutes
	$(BIN)/python experiments/calibration/run.py --workers 2

$(VENV)-lowest/installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e ".[all]" hypothesis pytest pytest-xdist
	touch $@

test-lowest: $(VENV)-lowest/installed  ## a quick selection on the lowest versions that pyproject.toml allows
	$(VENV)-lowest/bin/pytest $(TWICE) -m "not slow" $(QUICK)

# Without torch: a build for the CPU alone is not to be had for every Python where pip looks by default. Tests of networks are skipped.
$(VENV)-python/installed: pyproject.toml constraints.txt
	$(OTHER) -m venv --clear $(VENV)-python
	$(VENV)-python/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[compiled,xgboost]" hypothesis pytest pytest-xdist safetensors
	touch $@

OTHER ?= python3.13
test-python: $(VENV)-python/installed  ## the same selection on another Python, OTHER=python3.13
	$(VENV)-python/bin/pytest $(TWICE) -m "not slow" $(QUICK)

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
	$(BIN)/python docs/make_schema.py

clean:
	rm -rf $(VENV) $(VENV)-peers $(VENV)-lowest $(VENV)-python build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage
