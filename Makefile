# `make demo` and `make test` each work on a machine that has Python 3.11 or later, pip and make.
PYTHON ?= python3
BIN := .venv/bin
# Modules are compiled when they are first imported: most are never imported.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

PYTEST := -m pytest -n 2 --dist loadscope -rs

# A room is a folder or a module of one of the three packages; its tests bear its name.
PACKAGES := ldp_gym agents/ldp_agents benchmarks/ldp_bench
ROOM_TESTS = $(wildcard $(PACKAGES:=/$(ROOM)) $(PACKAGES:=/$(ROOM).py) tests/*/$(ROOM) tests/*/test_$(ROOM).py)

.PHONY: demo test pytest room coverage strict lint types layers docs tables perf mutations lowest core clean

demo: .venv/.bench  ## the learners on the main channels of the default game: a table, and a report to open
	OMP_NUM_THREADS=1 $(BIN)/ldp-gym bench quick

# The checks run one after the other next to the tests, which leave a core idle now and then.
test: .venv/.all  ## every check and every test; lists skipped tests with the reason, and the ten slowest
	$(MAKE) -j 2 --keep-going pytest lint layers types docs

pytest: .venv/.all
	OMP_NUM_THREADS=1 $(BIN)/python $(PYTEST) --durations=10

room: .venv/.all  ## the tests and doctests of one room: make room ROOM=channels
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(if $(ROOM_TESTS),$(ROOM_TESTS),$(error no room "$(ROOM)": name a folder or a module of a package, such as ROOM=channels))

coverage: .venv/.all  ## the share of lines and branches that the tests run, per file
	OMP_NUM_THREADS=1 $(BIN)/python $(PYTEST) --cov --cov-report=term:skip-covered

strict: .venv/.all  ## importing and the command without docstrings; the core's tests with every warning an error
	OMP_NUM_THREADS=1 $(BIN)/python -OO -c "import ldp_gym, ldp_agents, ldp_bench.commands"
	PYTHONOPTIMIZE=2 OMP_NUM_THREADS=1 $(BIN)/ldp-gym list
	OMP_NUM_THREADS=1 $(BIN)/python -X dev -W error -m pytest -n 2 --dist loadscope tests/ldp_gym tests/ldp_agents

lint: .venv/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

layers: .venv/.all  ## imports between rooms, against the layers in pyproject.toml
	$(BIN)/lint-imports --no-cache

types: .venv/.all
	$(BIN)/mypy

docs: .venv/.all  ## the site, in build/site; a warning is an error
	$(BIN)/python -m sphinx -q -W --keep-going docs build/site

tables: .venv/.all  ## the generated blocks of README.md and docs/*.md, from docs/data and the registries
	$(BIN)/python docs/tables.py

perf: .venv/.all  ## speed, as ratios against references measured in the same run
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/studies/perf.py

.venv/.bench: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e ".[bench]"
	touch $@

.venv/.all: .venv/.bench
	$(PIP) -e ".[all]"
	touch $@

mutations: .venv/.all  ## change 120 lines of formulas, one at a time, and list those that no test notices
	$(BIN)/python benchmarks/studies/mutations.py

# Old packages warn about parts of Python that newer versions drop: these warnings are ignored.
lowest:  ## the tests with the lowest versions that pyproject.toml admits, in a separate environment
	$(PYTHON) -m venv .venv-lowest && mkdir -p build
	$(PYTHON) benchmarks/studies/lowest_versions.py > build/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -c build/lowest.txt -e ".[all]"
	OMP_NUM_THREADS=1 .venv-lowest/bin/python $(PYTEST) -W ignore::DeprecationWarning

core:  ## the tests that need no extra; a skipped test names the extra that it needs
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip install --quiet --disable-pip-version-check -e . pytest pytest-xdist hypothesis
	OMP_NUM_THREADS=1 .venv-core/bin/python $(PYTEST)

clean:
	rm -rf .venv .venv-lowest .venv-core build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
