# Two commands: `make demo` and `make test`. Both work on a fresh machine with Python 3.10 or newer.
PYTHON ?= python3
BIN := .venv/bin
SIDE_BY_SIDE := -n auto --dist loadfile
PIP := $(BIN)/pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo engines matrix xla test test-slow fuzz check clean

demo: .venv/demo
	$(BIN)/ptmigrate --force --verify --devices 2 fixtures/plain/digits.py -- --epochs 2

test: .venv/dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow"

test-slow: .venv/dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m slow

fuzz: .venv/dev
	FUZZ=1 $(BIN)/python -m pytest -m "slow or not slow" tests/migrate/test_many_files.py tests/migrate/codemods/test_call_shapes.py tests/migrate/lift/test_generated_scripts.py tests/migrate/lift/test_generated_on_two.py tests/runtime/test_like_generated.py

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

# docs/engines.md, run: every engine that is installed, every kind of run.
matrix: .venv/engines
	MATRIX=1 $(BIN)/python -m pytest -m slow -k "not xla" tests/runtime/test_engine_matrix.py

# TPU strategies on PJRT's CPU device: torch_xla fits one torch, so it has an environment of its own. torch comes without
# the GPU libraries that its build for CUDA names; without_gpu puts empty ones in their place.
xla: .venv-xla/ready
	PJRT_DEVICE=CPU .venv-xla/bin/python -m pytest -m "slow or not slow" -k xla tests/runtime/test_engine_matrix.py tests/runtime/strategies/test_xla.py

XLA_PIP := .venv-xla/bin/pip --disable-pip-version-check install --quiet -c constraints-xla.txt

.venv-xla/ready: pyproject.toml constraints-xla.txt runtime/engines/without_gpu.py
	$(PYTHON) -m venv .venv-xla
	$(XLA_PIP) absl-py filelock fsspec jinja2 networkx numpy pyyaml requests sympy typing-extensions
	$(XLA_PIP) click libcst rich pytest pytest-timeout setuptools
	$(XLA_PIP) --no-deps torch torch_xla
	.venv-xla/bin/pip --disable-pip-version-check install --quiet --no-deps -e .
	.venv-xla/bin/python runtime/engines/without_gpu.py .venv-xla
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
	rm -rf .venv .venv-xla build migrated *.egg-info
