# Every target sets up what it needs: a virtual environment with pinned packages, made once.
# Another place for it: make VENV=/elsewhere ...   Another Python: make PYTHON=python3.12 ...

PYTHON ?= python3
VENV ?= .venv
QUICKSTART_OUT ?= quickstart
WORKERS ?= 2

# The published builds of this torch for Linux ask for exactly this triton.
TORCH := 2.13.0
TRITON := 3.7.1

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALLED := $(VENV)/.caref-installed
# One thread per test process: on few cores the threads of small matrix products only get in each other's way.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: help test test-slow test-all check format quickstart starter-model constraints clean
.DELETE_ON_ERROR:

help:  ## what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

quickstart: $(INSTALLED)  ## compare CAREF with cross-entropy on four small tasks, offline
	$(BIN)/caref quickstart --out '$(QUICKSTART_OUT)'

test: $(INSTALLED)  ## the fast tests
	$(PYTEST)

test-slow: $(INSTALLED)  ## the slow tests
	$(PYTEST) -m 'slow and not gpu and not network'

test-all: $(INSTALLED)  ## all tests that need neither a GPU nor a network
	$(PYTEST) -m 'not gpu and not network'

check: $(INSTALLED)  ## style, types and the fast tests: before every commit
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(PYTEST)

starter-model: $(INSTALLED)  ## train the packaged model anew, by its recipe: half an hour on two cores
	GOMP_SPINCOUNT=30000 OMP_NUM_THREADS=2 $(BIN)/python -m caref.starter src/caref/starter/model

format: $(INSTALLED)  ## let ruff correct style and layout
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

constraints:  ## resolve every dependency anew and write constraints.txt
	rm -rf build/resolve
	$(PYTHON) -m venv build/resolve
	build/resolve/bin/pip install --quiet 'torch==$(TORCH)'
	build/resolve/bin/pip install --quiet 'torch==$(TORCH)' 'triton==$(TRITON)' \
		-e '.[dev,entmax,offline,ray,studio,triton]'
	{ echo '# Exact versions of everything that the extras dev, entmax, offline, ray, studio and triton install.'; \
	  echo '# Made by `make constraints`, which resolves pyproject.toml anew; not edited by hand.'; \
	  echo '# Builds of torch for GPUs also install CUDA packages, in the versions that torch asks for.'; \
	  build/resolve/bin/pip freeze --all --exclude-editable --exclude pip | sed -E 's/(==[^+]*)\+.*/\1/'; \
	} > build/resolve/constraints.txt
	mv build/resolve/constraints.txt constraints.txt
	rm -rf build/resolve

clean:  ## remove caches and build output, but not the virtual environment
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Made again when what is to be installed has changed. Torch goes first, so that nothing else chooses its version.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "caref needs Python 3.11 or newer, and '$(PYTHON)' is: $$($(PYTHON) --version 2>&1 | tail -n 1)" >&2; \
		echo "name another one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
		exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -c constraints.txt torch
	$(PIP) install --quiet -c constraints.txt -e '.[dev]'
	touch $@
