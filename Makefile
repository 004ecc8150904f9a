# `make demo` and `make test` each work on a machine with Python 3.11+, pip and make alone.
PYTHON ?= python3
BIN := .venv/bin
# Modules are compiled when they are first imported: most never are.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: demo test lint types layers docs perf scaling coverage audit learned baselines lowest core attack clean

demo: .venv/.bench  ## the learners on the main channels of the default game: a table, and a report to open
	OMP_NUM_THREADS=1 $(BIN)/ldp-gym bench quick

test: .venv/.all  ## every check and every test; says which it left out, and why
	$(MAKE) -j 2 types docs layers lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope -rs

lint: .venv/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

layers: .venv/.all  ## who may import whom: pyproject.toml has the layers
	$(BIN)/lint-imports --no-cache

types: .venv/.all
	$(BIN)/mypy

docs: .venv/.all  ## the site, in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --site-dir build/site

perf: .venv/.all  ## speed, as ratios against references measured in the same run
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/perf.py

scaling: .venv/.all  ## what a round costs as K and M grow, for every channel; draws the figure of docs/speed.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/scaling.py

.venv/.bench: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e ".[bench]"
	touch $@

.venv/.all: .venv/.bench
	$(PIP) -e ".[all]"
	touch $@

coverage: .venv/.all  ## what 95% intervals cover on the risks of our own games, and how long they are
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/coverage.py

audit: .venv/.all  ## the full sweep: every pure channel on 20,000 adversarial classes
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/adversarial_classes.py

learned: .venv/.all  ## train amortized and print the tables of docs/learned.md; about an hour
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore benchmarks/learned.py --out ldp-gym-results/learned --figure docs/pictures/learned.png

baselines: .venv/.all  ## plain RL agents on the named games, for docs/train.md; at most 2 hours on two cores
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore benchmarks/baselines.py

# Old packages warn of what newer ones below them will drop: that is not for us to mend.
lowest:  ## the tests with the lowest versions that pyproject.toml admits, in an environment of their own
	$(PYTHON) -m venv .venv-lowest && mkdir -p build
	$(PYTHON) benchmarks/lowest_versions.py > build/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -c build/lowest.txt -e ".[all]"
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -n 2 --dist loadscope -rs -W ignore::DeprecationWarning

core:  ## the tests that need no extra; what is skipped says which it needs
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip install --quiet --disable-pip-version-check -e . pytest pytest-xdist hypothesis
	OMP_NUM_THREADS=1 .venv-core/bin/python -m pytest -n 2 --dist loadscope -rs

attack: .venv/.all  ## wrong calls, kills, damaged stores and hostile code, from a seed; some minutes
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore benchmarks/attack

clean:
	rm -rf .venv .venv-lowest .venv-core build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
