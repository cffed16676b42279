# Two commands: `make demo` and `make test`. Both work on a fresh machine with Python 3.10 or newer.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo engines test test-slow fuzz check clean

demo: .venv/demo
	$(BIN)/ptmigrate --force --verify --devices 2 fixtures/plain/digits.py -- --epochs 2

test: .venv/dev
	$(BIN)/python -m pytest -m "not slow"

test-slow: .venv/dev
	$(BIN)/python -m pytest -m slow

fuzz: .venv/dev
	FUZZ=1 $(BIN)/python -m pytest -m "slow or not slow" tests/migrate/test_many_files.py tests/migrate/codemods/test_call_shapes.py

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build/typing && mkdir -p build/typing/ptmigrate
	for f in migrate lint_rules runtime; do ln -s ../../../$$f build/typing/ptmigrate/$$f; done
	MYPYPATH=build/typing $(BIN)/mypy -p ptmigrate

# FairScale, DeepSpeed and Horovod: the tests that need them are skipped by name without. Horovod takes minutes to build.
engines: .venv/engines

.venv/engines: pyproject.toml constraints.txt runtime/engines/build_horovod.py | .venv/dev
	$(PIP) setuptools wheel ninja
	$(PIP) --no-build-isolation --no-deps fairscale==0.4.13
	DS_BUILD_OPS=0 DS_ACCELERATOR=cpu $(PIP) --no-build-isolation 'deepspeed>=0.19'
	$(BIN)/python -m ptmigrate.runtime.engines.build_horovod
	touch $@

.venv/python:
	$(PYTHON) -m venv .venv
	touch $@

.venv/demo: pyproject.toml constraints.txt | .venv/python
	$(PIP) -e '.[demo]'
	touch $@

.venv/dev: pyproject.toml constraints.txt | .venv/python
	$(PIP) -e '.[dev]'
	touch $@ .venv/demo

clean:
	rm -rf .venv build migrated *.egg-info
