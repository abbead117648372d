"""Servers: options, start and stop, models, repositories, metrics, log."""

import json
import logging
import re
import time

import numpy as np
import pytest
import tritonserver
from tritonserver import LogLevel, Metric, MetricFamily, MetricKind, ModelControlMode

X = {"INPUT0": np.array([1, 2, 3], np.float32)}

# The public names of Triton's module.
NAMES = [
    "AlreadyExistsError",
    "DataType",
    "DLDeviceType",
    "InferenceRequest",
    "InferenceResponse",
    "InstanceGroupKind",
    "InternalError",
    "InvalidArgumentError",
    "LogFormat",
    "MemoryBuffer",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "MetricFormat",
    "MetricKind",
    "Model",
    "ModelBatchFlag",
    "ModelControlMode",
    "ModelTxnPropertyFlag",
    "NotFoundError",
    "Options",
    "RateLimiterResource",
    "RateLimitMode",
    "Server",
    "Tensor",
    "TritonError",
    "UnavailableError",
    "UnknownError",
    "UnsupportedError",
    "__version__",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_module_has_each_public_name_of_tritons(name):
    assert hasattr(tritonserver, name)


def test_the_names_that_triton_takes_from_c_are_the_same_objects():
    from tritonserver._c import triton_bindings

    assert triton_bindings.TRITONSERVER_DataType is tritonserver.DataType
    assert triton_bindings.InvalidArgumentError is tritonserver.InvalidArgumentError
    assert tritonserver._c.TRITONSERVER_LogLevel is tritonserver.LogLevel
    assert tritonserver._api._response.InferenceResponse is tritonserver.InferenceResponse


def test_every_exception_is_a_triton_error_of_the_module():
    for name in NAMES:
        if name.endswith("Error"):
            kind = getattr(tritonserver, name)
            assert issubclass(kind, tritonserver.TritonError) and kind.__module__ == "tritonserver"


@pytest.mark.parametrize(
    "ask",
    [
        lambda server: server.ready(),
        lambda server: server.live(),
        lambda server: server.model("m"),
        lambda server: server.models(),
        lambda server: server.metadata(),
        lambda server: server.metrics(),
        lambda server: server.load("m"),
        lambda server: server.stop(),
    ],
)
def test_a_server_that_is_not_started_refuses_everything(ask):
    with pytest.raises(tritonserver.InvalidArgumentError, match="not started"):
        ask(tritonserver.Server(model_repository="models"))


@pytest.mark.parametrize(
    "options, kind",
    [
        ({"server_id": 1}, TypeError),
        ({"model_repository": 1}, TypeError),
        ({"model_repository": "m", "startup_models": "m"}, TypeError),
        ({"model_repository": "m", "exit_timeout": "30"}, TypeError),
        ({"model_repository": None}, tritonserver.InvalidArgumentError),
        ({}, tritonserver.InvalidArgumentError),
        ({"model_repository": "/nowhere"}, tritonserver.InternalError),
        ({"model_repository": "/nowhere", "startup_models": ["m"]}, tritonserver.TritonError),
        (
            {"model_repository": "m", "cache_config": {"none": {"size": 1}}},
            tritonserver.TritonError,
        ),
    ],
)
def test_wrong_options_are_refused_at_the_start(options, kind):
    server = tritonserver.Server(**options)

    with pytest.raises(kind):
        server.start()
    with pytest.raises(tritonserver.InvalidArgumentError, match="not started"):
        server.ready()


def test_every_option_reaches_the_server(repository, tmp_path):
    server = tritonserver.Server(
        tritonserver.Options(
            model_repository=[str(repository)],
            server_id="mine",
            model_control_mode=ModelControlMode.EXPLICIT,
            startup_models=["identity"],
            strict_model_config=True,
            rate_limiter_mode=tritonserver.RateLimitMode.EXEC_COUNT,
            rate_limiter_resources=[
                tritonserver.RateLimiterResource("r", 4, 1),
                tritonserver.RateLimiterResource("s", 2, -1),
            ],
            pinned_memory_pool_size=1,
            cuda_memory_pool_sizes={0: 7},
            cache_config={"local": {"size": 2**20}},
            exit_timeout=3,
            strict_readiness=False,
            model_load_thread_count=2,
            model_load_retry_count=1,
            enable_peer_access=False,
            cpu_metrics=False,
            metrics_interval=500,
            backend_directory=str(tmp_path),
            repo_agent_directory=str(tmp_path),
            model_load_device_limits=[
                tritonserver.ModelLoadDeviceLimit(tritonserver.InstanceGroupKind.GPU, 0, 0.5)
            ],
            backend_configuration={"": {"default-max-batch-size": "2"}, "python": {"a": "b"}},
            host_policies={"p": {"cpu-cores": "0-1"}},
            metrics_configuration={"": {"histogram_latencies": "true"}},
            log_file=str(tmp_path / "log"),
            log_verbose=1,
        )
    ).start(wait_until_ready=True)

    try:
        options = server._embedded.options
        assert server.metadata()["name"] == "mine"
        assert options.disable_auto_complete_config and not options.strict_readiness
        assert options.rate_limit == "execution_count"
        assert options.exit_timeout_secs == 3 and options.model_load_thread_count == 2
        assert options.backend_config["python"] == {"a": "b"}
        assert options.log_verbose == 1 and options.log_warning and options.log_error
        assert "loading: identity:1" in (tmp_path / "log").read_text()
        assert server.model("identity").ready()
    finally:
        server.stop()
        logging.getLogger("core").setLevel(logging.NOTSET)


def test_a_server_starts_again_after_its_stop(repository):
    server = tritonserver.Server(
        model_repository=str(repository), model_control_mode=ModelControlMode.EXPLICIT
    )
    for _ in range(2):
        assert server.start(wait_until_ready=True) is server
        assert server.live() and server.ready()
        with pytest.raises(tritonserver.InvalidArgumentError, match="already started"):
            server.start()
        server.stop()


def test_a_stop_that_leaves_requests_behind_is_an_error(repository):
    server = tritonserver.Server(
        model_repository=str(repository),
        model_control_mode=ModelControlMode.EXPLICIT,
        startup_models=["slow"],
        exit_timeout=0,
    ).start()
    stream = server.model("slow").infer(inputs=X)

    with pytest.raises(tritonserver.InternalError, match="Exit timeout expired"):
        server.stop()
    with pytest.raises(tritonserver.TritonError):
        list(stream)


def test_a_failed_model_fails_the_start_unless_the_options_permit_it(tmp_path):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "none"')

    with pytest.raises(tritonserver.InternalError, match="failed to load all models"):
        tritonserver.Server(model_repository=str(tmp_path)).start()

    server = tritonserver.Server(model_repository=str(tmp_path), exit_on_error=False).start()
    try:
        assert server.models()["m", 1].state == "UNAVAILABLE"
        assert "none" in server.models()["m", 1].reason
        with pytest.raises(tritonserver.UnavailableError, match=r"0\.3"):
            tritonserver.Server(model_repository=str(tmp_path), exit_on_error=False).start(
                wait_until_ready=True, timeout=0.3
            )
    finally:
        server.stop()


def test_models_lists_every_model_with_its_state(explicit):
    explicit.load("identity")

    found = explicit.models()

    assert found["identity", 1].state == "READY"
    assert found["text", -1].state is None
    assert found["identity"].version == -1
    assert str(found["identity", 1]) == "{'name': 'identity', 'version': 1, 'state': 'READY'}"
    assert set(explicit.models(exclude_not_ready=True)) == {("identity", 1)}
    for key in ("none", ("identity", 2)):
        with pytest.raises(KeyError, match="unknown model"):
            found[key]


def test_a_model_is_loaded_and_unloaded_by_name(explicit):
    model = explicit.load("identity")
    assert model.ready() and model.version == -1

    explicit.unload(model, wait_until_unloaded=True)

    assert not model.ready()
    assert explicit.models()["identity", 1].state == "UNAVAILABLE"
    assert explicit.models()["identity", 1].reason == "unloaded"
    assert not explicit.model("none").ready()
    for ask in (lambda: explicit.load("none"), lambda: explicit.load("identity", {"config": "{"})):
        with pytest.raises(tritonserver.TritonError):
            ask()
    with pytest.raises(TypeError, match="parameter 'config'"):
        explicit.load("identity", {"config": {"backend": "identity"}})


def test_a_load_takes_a_configuration_and_files(explicit):
    config = {
        "backend": "identity",
        "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [3]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [3]}],
    }
    model = explicit.load("new", {"config": json.dumps(config), "file:1/x": b"data"})

    assert model.metadata()["inputs"] == [{"name": "INPUT0", "datatype": "FP32", "shape": [3]}]
    (response,) = model.infer(inputs=X)
    assert response.final


def test_a_load_needs_the_explicit_mode(server):
    with pytest.raises(tritonserver.UnavailableError):
        server.load("identity")
    with pytest.raises(tritonserver.UnavailableError):
        server.register_model_repository("/nowhere")
    with pytest.raises(tritonserver.UnavailableError):
        server.poll_model_repository()


def test_repositories_are_registered_and_removed_while_the_server_runs(
    explicit, repository, tmp_path
):
    (tmp_path / "own" / "1").mkdir(parents=True)
    text = (repository / "identity" / "config.pbtxt").read_text()
    (tmp_path / "own" / "config.pbtxt").write_text('name: "own"\n' + text)

    explicit.register_model_repository(str(tmp_path), {"own": "renamed"})

    assert ("renamed", -1) in explicit.models() and ("own", -1) not in explicit.models()
    assert explicit.load("renamed").config()["name"] == "renamed"
    with pytest.raises(tritonserver.TritonError):
        explicit.load("own")
    with pytest.raises(tritonserver.AlreadyExistsError):
        explicit.register_model_repository(str(tmp_path))
    with pytest.raises(tritonserver.InternalError):
        explicit.register_model_repository("/nowhere")
    explicit.unregister_model_repository(str(tmp_path))
    with pytest.raises(tritonserver.NotFoundError):
        explicit.unregister_model_repository(str(tmp_path))
    (response,) = explicit.model("renamed").infer(inputs=X)  # what is loaded stays
    assert response.final


def test_a_model_in_two_repositories_cannot_be_loaded(explicit, tmp_path):
    (tmp_path / "identity" / "1").mkdir(parents=True)
    explicit.register_model_repository(str(tmp_path))

    with pytest.raises(tritonserver.TritonError, match="two or more"):
        explicit.load("identity")


def test_a_poll_loads_what_is_new_and_only_a_poll(tmp_path, repository):
    server = tritonserver.Server(
        model_repository=str(tmp_path), model_control_mode=ModelControlMode.POLL
    ).start()
    try:
        (tmp_path / "identity" / "1").mkdir(parents=True)
        config = (repository / "identity" / "config.pbtxt").read_text()
        (tmp_path / "identity" / "config.pbtxt").write_text(config)
        assert not server.model("identity").ready()

        server.poll_model_repository()

        assert server.model("identity").ready()
    finally:
        server.stop()


def test_facts_about_a_model_have_tritons_form(server):
    model = server.model("batches")
    list(model.infer(inputs={"INPUT0": np.zeros((2, 1), np.float32)}))

    assert model.metadata()["versions"] == ["1"] and model.metadata()["platform"] == "identity"
    assert model.config()["max_batch_size"] == 8
    assert model.batch_properties() is tritonserver.ModelBatchFlag.FIRST_DIM
    assert server.model("identity").batch_properties() is tritonserver.ModelBatchFlag.UNKNOWN
    assert model.transaction_properties() is tritonserver.ModelTxnPropertyFlag.ONE_TO_ONE
    (stats,) = model.statistics()["model_stats"]
    assert stats["inference_count"] >= 2 and stats["inference_stats"]["success"]["count"] >= 1
    with pytest.raises(tritonserver.InvalidArgumentError):
        model.config(2)
    with pytest.raises(tritonserver.NotFoundError):
        server.model("none").config()


def test_metrics_are_text_with_those_of_the_program(server):
    list(server.model("identity").infer(inputs=X))
    family = MetricFamily(MetricKind.COUNTER, "program_calls", "Calls of the program")
    metric = Metric(family, {"who": "me"})
    metric.increment(2)
    Metric(family, {"who": "me"}).increment(1)

    text = server.metrics()

    assert re.search(r'nv_inference_count\{.*model="identity".*\} \d+', text)
    assert 'program_calls{who="me"} 3' in text
    assert metric.value == 3 and metric.kind is MetricKind.COUNTER
    with pytest.raises(tritonserver.InvalidArgumentError):
        metric.increment(-1)
    with pytest.raises(tritonserver.UnsupportedError):
        metric.set_value(1)
    with pytest.raises(tritonserver.InvalidArgumentError, match="as counter"):
        MetricFamily(MetricKind.GAUGE, "program_calls", "")


def test_a_metric_vanishes_with_its_object(server):
    family = MetricFamily(MetricKind.GAUGE, "program_level", "Level")
    metric = Metric(family)
    metric.set_value(5)
    metric.increment(-2)
    assert "program_level 3" in server.metrics()

    del metric, family

    end = time.monotonic() + 5
    while "program_level" in server.metrics() and time.monotonic() < end:
        time.sleep(0.01)
    assert "program_level" not in server.metrics()


def test_a_callback_gets_every_message_of_the_log(repository, tmp_path):
    found = []
    server = tritonserver.Server(
        model_repository=str(repository),
        model_control_mode=ModelControlMode.EXPLICIT,
        log_info=True,
        log_file=str(tmp_path / "log"),
        log_callback=lambda *record: found.append(record),
    ).start()
    try:
        server.load("identity")
        tritonserver.LogMessage(LogLevel.WARN, "of the program")
    finally:
        server.stop()
        tritonserver._api._logging.set_log_callback(None)

    texts = [each[4] for each in found]
    assert "loading: identity:1" in texts
    level, filename, line, time_ns, text = found[texts.index("of the program")]
    assert (level, filename, text) == (LogLevel.WARN, "test_server.py", "of the program")
    assert line > 0 and time_ns > 1.7e18
    count = len(found)
    tritonserver.LogMessage(LogLevel.WARN, "no callback any more")
    assert len(found) == count


def test_a_callback_that_raises_does_not_disturb_the_log():
    def broken(*record):
        raise RuntimeError("broken")

    tritonserver._api._logging.set_log_callback(broken)
    try:
        tritonserver.LogMessage(LogLevel.ERROR, "still logged")
    finally:
        tritonserver._api._logging.set_log_callback(None)
