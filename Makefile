# Every target sets itself up from a fresh clone: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
INSTALLED := $(VENV)/.installed
DOCS_INSTALLED := $(VENV)/.installed-docs
# Only errors are shown: where pip looks for packages is the machine's business.
PIP := $(BIN)/pip -qq --disable-pip-version-check
# Python compiles what is imported. pip would compile everything that is installed: half a minute for nothing.
INSTALL := $(PIP) install --no-compile -c constraints.txt

export MPLBACKEND := Agg
# Two test workers on two cores: one thread each is faster than four that fight.
# Each gets one half of the list, and takes from the other's end when it is done: few fixtures are made twice.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal
# mypy starts without a cache in a fresh clone.
MYPY := $(BIN)/mypy --num-workers 2

.PHONY: demo test test-all test-lowest lint bench soak docs clean

demo: $(INSTALLED)
	$(BIN)/sfumato demo --out demo --replace

test: lint
	$(TEST) -m "not slow"

test-all: lint
	$(TEST)

# The lowest versions that pyproject.toml allows, with PYTHON, for example the oldest that it allows. Where no CPU build
# of that torch is at hand, several gigabytes of CUDA packages come with it.
test-lowest: $(INSTALLED)
	$(PYTHON) -m venv $(LOWEST)
	$(BIN)/python tests/lowest_versions.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/pip -qq --disable-pip-version-check install -c $(LOWEST)/constraints.txt -e ".[test,parquet,data,dask,studio]"
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -q -n 2 -m "not slow"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MYPY)

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.fitting
	$(BIN)/python -m benchmarks.design
	$(BIN)/python -m benchmarks.region
	$(BIN)/python -m benchmarks.proof
	$(BIN)/python -m benchmarks.insiders
	$(BIN)/python -m benchmarks.families
	$(BIN)/python -m benchmarks.diagonal
	$(BIN)/python -m benchmarks.pointwise
	$(BIN)/python -m benchmarks.predictions
	$(BIN)/python -m benchmarks.cloaking
	$(BIN)/python -m benchmarks.subspace
	$(BIN)/python -m benchmarks.compressed --region
	$(BIN)/python -m benchmarks.on_dask
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.choosing
	$(BIN)/python -m benchmarks.waiting
	$(BIN)/python -m benchmarks.studio
	$(BIN)/python -m benchmarks.studio_page
	$(BIN)/python -m benchmarks.records
	$(BIN)/python -m benchmarks.rehearsal --draws 40

# Random trials against independent answers; broken ones are kept in build/soak. SEED and more options: SOAK="--seed 7".
MINUTES ?= 10
soak: $(INSTALLED)
	PYTHONPATH=.:src $(BIN)/python -m soak --minutes $(MINUTES) $(SOAK)

# Tutorials are run to see that they work; their pages show the pictures that are in the repository.
docs: $(DOCS_INSTALLED)
	$(BIN)/python docs/tutorials/orbits.py build/tutorials
	$(BIN)/python docs/tutorials/census.py build/tutorials
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html"

clean:
	rm -rf demo site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks soak -name __pycache__ -type d -prune -exec rm -rf {} +

# torch comes first and alone, so that a CPU build that is at hand is taken and no CUDA libraries are fetched.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) torch
	$(INSTALL) -e ".[test,parquet,data,dask,studio]"
	touch $@

$(DOCS_INSTALLED): $(INSTALLED)
	$(INSTALL) -e ".[docs]"
	touch $@
