# The verbs of this repository. Each does its own set-up, and none does it twice.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Folders of the backends, plugins and clients.
DISTRIBUTIONS := $(shell .ci/distributions)
# What an installation is made of; after a change of one of these it is made again.
SOURCES := .ci/install pyproject.toml CMakeLists.txt $(wildcard cmake/*) $(addsuffix /pyproject.toml,$(DISTRIBUTIONS)) \
  $(shell find core frontends $(DISTRIBUTIONS) -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.hpp' -o -name '*.binpb' \
    -o -name CMakeLists.txt) $(wildcard $(patsubst %.pxd,%.py,$(shell find core -path core/native -prune -o -name '*.pxd' -print)))

PROTOS := $(wildcard core/config/*.proto frontends/grpc/protocol/*.proto)

.PHONY: serve test test-portable lint shape dev bench bench-full bench-guard bench-batching fuzz fuzz-cost soak wheels new-backend new-plugin docs proto clean

serve: .venv/.models  ## serve the example models
	exec $(BIN)/core-serve --model-repository=examples/models $(ARGS)

test: .venv/.test .venv/.models  ## run every test
	.ci/test $(BIN) $(ARGS)

test-portable: .venv/.test .venv/.models  ## the tests without what only Linux has, see docs/portable.md
	CORE_PORTABLE=1 .ci/test $(BIN) -rs tests/unit tests/flow tests/integration tests/conformance backends/python $(ARGS)

lint: .venv/.test  ## style, then types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	for each in $(DISTRIBUTIONS); do (cd $$each && ../../$(BIN)/mypy) || exit 1; done

shape: .venv/.test  ## size, names and imports of the code as numbers, with their bounds
	$(BIN)/python -m tests.shape $(ARGS)

dev: .venv/.test  ## everything that work on the code needs; builds the compiled modules again
	$(PIP) install --no-build-isolation --no-deps --editable .
	for each in $(dir $(wildcard $(addsuffix /CMakeLists.txt,$(DISTRIBUTIONS)))); do \
	  $(PIP) install --no-build-isolation --no-deps --editable $$each || exit 1; done

bench: .venv/.test  ## this server beside Triton, MLServer and FastAPI, in under ten minutes
	$(BIN)/python -m benchmarks $(ARGS)

bench-full: .venv/.test  ## the same, everything; over an hour
	$(BIN)/python -m benchmarks --full $(ARGS)

bench-guard: .venv/.test  ## instructions of a request, compared with those that were committed
	$(BIN)/python -m benchmarks.guard $(ARGS)

soak: .venv/.test  ## ten minutes of load while everything changes: nothing may be lost
	PYTHONPATH=.:tests $(BIN)/python -m soak $(ARGS)

bench-batching: .venv/.test  ## how full batches are, compared with what the arrivals allow
	$(BIN)/python -m benchmarks.batching $(ARGS)

fuzz: .venv/.test  ## 200,000 hostile requests over both protocols; SEED=7 makes others
	$(BIN)/python -m tests.fuzz.hostile --seed $(or $(SEED),1) $(ARGS)

fuzz-cost: .venv/.test  ## an hour's search for requests that cost much memory or time for their size
	$(BIN)/python -m tests.fuzz.costly --seed $(or $(SEED),1) $(ARGS)

wheels: .venv/.installed  ## wheels of all distributions, in wheels/
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir wheels . $(addprefix ./,$(DISTRIBUTIONS))

new-backend: .venv/.installed  ## a backend to start from: make new-backend NAME=lightgbm
	$(BIN)/python examples/new_distribution.py backend "$(NAME)" backends
	$(PIP) install --no-build-isolation --editable "backends/$(NAME)"

new-plugin: .venv/.installed  ## a plugin to start from: make new-plugin NAME=audit
	$(BIN)/python examples/new_distribution.py plugin "$(NAME)" plugins
	$(PIP) install --no-build-isolation --editable "plugins/$(NAME)"

docs: .venv/.installed  ## the pages that are made from the code
	$(BIN)/python -m frontends.pages docs

proto: .venv/.test  ## compile the .proto files to descriptors, which are committed
	for each in $(PROTOS); do $(BIN)/python -m grpc_tools.protoc -I$$(dirname $$each) -Icore/config \
	  --descriptor_set_out=$${each%.proto}.binpb $$(basename $$each) || exit 1; done

clean:
	rm -rf .venv build wheels
	git clean -fdXq examples

.venv/.installed: $(SOURCES)
	PYTHON=$(PYTHON) .ci/install .venv examples
	touch $@

.venv/.test: .venv/.installed
	$(PIP) install --group test --group lint
	touch $@

# The example models that the repository does not hold itself.
.venv/.models: .venv/.installed examples/make_models.py
	$(BIN)/python examples/make_models.py
	touch $@
