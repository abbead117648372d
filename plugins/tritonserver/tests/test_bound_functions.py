"""PyTriton's bind: functions of every kind, their settings, and the life of the server."""

import threading
import time

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException, np_to_triton_dtype
from tritonserver_core.pytriton import (
    DynamicBatcher,
    ModelConfig,
    ModelWarmup,
    PyTritonUnrecoverableError,
    PyTritonValidationError,
    QueuePolicy,
    Tensor,
    Triton,
    TritonConfig,
    TritonSecurityConfig,
    WarmupInput,
    batch,
    sample,
)

PORTS = {f"{name}_port": 0 for name in ("http", "grpc", "metrics")}
LOCAL = {f"{name}_address": "127.0.0.1" for name in ("http", "grpc", "metrics")}
CONFIG = TritonConfig(**PORTS, **LOCAL)
OPEN = TritonSecurityConfig(restricted_endpoints=[])


def floats(name, *shape):
    return Tensor(name=name, dtype=np.float32, shape=shape or (-1,))


A, B = [floats("a")], [floats("b")]
ROWS = np.array([[1, 2], [3, 4]], np.float32)


def port(triton, name):
    return next(each.port for each in triton._server._opened if each.name == name)


def ask(triton, model, outputs=("b",), **inputs):
    """Send a request over HTTP; return the outputs."""
    client = httpclient.InferenceServerClient(f"127.0.0.1:{port(triton, 'http')}")
    given = []
    for name, value in inputs.items():
        each = httpclient.InferInput(name, value.shape, np_to_triton_dtype(value.dtype))
        each.set_data_from_numpy(value)
        given.append(each)
    try:
        result = client.infer(model, given)
        return [result.as_numpy(name) for name in outputs]
    finally:
        client.close()


@pytest.fixture
def triton():
    with Triton(config=CONFIG, security_config=OPEN) as found:
        yield found


def test_a_batched_function_gets_the_rows_of_all_requests(triton):
    sizes = []

    @batch
    def double(a):
        sizes.append(len(a))
        return {"b": 2 * a}

    batcher = DynamicBatcher(max_queue_delay_microseconds=200_000, preferred_batch_size=[4])
    triton.bind(
        "double", double, A, B, config=ModelConfig(max_batch_size=8, batcher=batcher), strict=True
    )
    found = {}

    def send(i):
        (found[i],) = ask(triton, "double", a=ROWS + i)

    threads = [threading.Thread(target=send, args=(i,)) for i in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sizes == [4]
    for i in range(2):
        assert found[i].tolist() == (2 * (ROWS + i)).tolist()


def test_a_list_result_is_in_the_order_of_the_outputs(triton):
    @batch
    def both(**inputs):
        return [inputs["a"] + 1, inputs["a"] + 2]

    triton.bind("both", both, A, [floats("b"), floats("c")])

    found = ask(triton, "both", outputs=("b", "c"), a=ROWS)
    assert [each.tolist() for each in found] == [(ROWS + 1).tolist(), (ROWS + 2).tolist()]


def test_a_plain_function_gets_requests_with_their_parameters(triton):
    seen = []

    def raw(requests):
        seen.extend((each.parameters, each.requested_output_names, list(each)) for each in requests)
        requests[0]["a"][:] = 0  # the arrays are the function's own
        return [{"b": each["a"]} for each in requests]

    triton.bind("raw", raw, A, B, config=ModelConfig(batching=False))

    assert ask(triton, "raw", a=ROWS[0])[0].tolist() == [0, 0]
    assert seen == [(None, None, ["a"])]


def test_a_method_and_a_callable_object_are_bound(triton):
    class Model:
        factor = 3

        @batch
        def __call__(self, a):
            return {"b": self.factor * a}

        @sample
        def one(self, a):
            return {"b": self.factor + a}

    triton.bind("object", Model(), A, B)
    triton.bind("method", Model().one, A, B, config=ModelConfig(batching=False))

    assert ask(triton, "object", a=ROWS)[0].tolist() == (3 * ROWS).tolist()
    assert ask(triton, "method", a=ROWS[0])[0].tolist() == [4, 5]


def test_text_goes_in_and_out(triton):
    @batch
    def upper(t):
        return {"u": np.char.upper(np.char.decode(t.astype("bytes"), "utf-8"))}

    text = [Tensor(name="t", dtype=bytes, shape=(1,))]
    triton.bind("upper", upper, text, [Tensor(name="u", dtype=np.bytes_, shape=(1,))], strict=True)

    (found,) = ask(triton, "upper", outputs=("u",), t=np.array([["é".encode()], [b"x"]], object))
    assert [each.decode() for each in found.ravel()] == ["É", "X"]


def test_a_generator_is_a_decoupled_model(triton):
    def count(requests):
        for i in range(3):
            yield [{"b": each["a"] + i} for each in requests]

    triton.bind("count", count, A, B, config=ModelConfig(decoupled=True))
    stream = grpcclient.InferenceServerClient(f"127.0.0.1:{port(triton, 'grpc')}")
    found, done = [], threading.Event()

    def receive(result, error):
        found.append(error or result.as_numpy("b").tolist())
        if len(found) == 3:
            done.set()

    stream.start_stream(receive)
    given = grpcclient.InferInput("a", [1, 2], "FP32")
    given.set_data_from_numpy(ROWS[:1])
    stream.async_stream_infer("count", [given])
    assert done.wait(10)
    stream.stop_stream()
    stream.close()

    assert found == [(ROWS[:1] + i).tolist() for i in range(3)]


def test_a_coroutine_function_runs_on_the_servers_loop(triton):
    async def later(requests):
        return [{"b": each["a"] + 1} for each in requests]

    triton.bind("later", later, A, B)

    assert ask(triton, "later", a=ROWS)[0].tolist() == (ROWS + 1).tolist()


def test_several_functions_are_several_instances(triton):
    calls = [0, 0]
    barrier = threading.Barrier(2, timeout=10)

    def instance(i):
        @batch
        def function(a):
            calls[i] += 1
            barrier.wait()
            return {"b": a}

        return function

    triton.bind("two", [instance(0), instance(1)], A, B, config=ModelConfig(batcher=None))
    threads = [
        threading.Thread(target=ask, args=(triton, "two"), kwargs={"a": ROWS}) for _ in range(2)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert calls == [1, 1]


def test_an_error_of_the_function_reaches_the_client(triton):
    @batch
    def broken(a):
        raise ValueError("no luck")

    triton.bind("broken", broken, A, B)

    with pytest.raises(InferenceServerException, match="ValueError: no luck"):
        ask(triton, "broken", a=ROWS)


@pytest.mark.parametrize(
    "result, said",
    [
        ([{"b": [1]}], "numpy array"),
        ({"b": ROWS}, "list"),
        ([], "0 responses to 1 requests"),
        ([{"b": ROWS.astype(np.float64)}], "float64"),
        ([{"b": np.zeros((2, 1, 1), np.float32)}], r"shape \[1, 1\]"),
        ([{"z": ROWS}], "'z'"),
    ],
)
def test_a_strict_function_must_return_what_it_declares(triton, result, said):
    triton.bind("wrong", lambda requests: result, A, B, strict=True)

    with pytest.raises(InferenceServerException, match=said):
        ask(triton, "wrong", a=ROWS)


def test_an_unrecoverable_error_ends_the_server():
    @batch
    def fatal(a):
        raise PyTritonUnrecoverableError("the device is gone")

    triton = Triton(config=CONFIG, security_config=OPEN)
    triton.bind("fatal", fatal, A, B)
    serving = threading.Thread(target=triton.serve)
    serving.start()
    end = time.monotonic() + 20
    while not triton.is_connected() and time.monotonic() < end:
        time.sleep(0.02)

    with pytest.raises(Exception):  # noqa: B017  its connection may end first
        ask(triton, "fatal", a=ROWS)
    serving.join(20)

    assert not serving.is_alive() and not triton.is_alive()


def test_settings_become_the_configuration_of_the_model(triton):
    batcher = DynamicBatcher(
        max_queue_delay_microseconds=5,
        preferred_batch_size=[2, 4],
        priority_levels=2,
        default_priority_level=1,
        default_queue_policy=QueuePolicy(max_queue_size=7),
        priority_queue_policy={2: QueuePolicy(default_timeout_microseconds=9)},
    )
    config = ModelConfig(max_batch_size=8, batcher=batcher, response_cache=True)
    triton.bind(
        "m", batch(lambda a: {"b": a}), [floats("a"), floats("o")], [floats("b")], config=config
    )

    found = triton._server.config("m")
    batching = found["dynamic_batching"]
    assert found["max_batch_size"] == 8 and found["response_cache"]["enable"]
    assert batching["preferred_batch_size"] == [2, 4]
    assert batching["max_queue_delay_microseconds"] == 5
    assert batching["priority_levels"] == 2
    assert batching["default_queue_policy"]["max_queue_size"] == 7
    assert batching["priority_queue_policy"]["2"]["default_timeout_microseconds"] == 9


def test_a_model_gets_its_warmup_requests_before_it_is_ready(tmp_path, triton):
    np.save(tmp_path / "one.npy", np.array([5, 6], np.float32))
    seen = []

    @batch
    def record(a):
        seen.append(a.copy())
        return {"b": a}

    inputs = (
        WarmupInput(np.float32, (2,), zero_data=True),
        WarmupInput(np.float32, (2,), random_data=True),
        WarmupInput(np.float32, (2,), input_data_file=str(tmp_path / "one.npy")),
    )
    warmup = [ModelWarmup("w", 3, {"a": each}, count=1) for each in inputs]
    triton.bind("warm", record, A, B, config=ModelConfig(model_warmup=warmup))

    assert [each.shape for each in seen] == [(3, 2)] * 3
    assert not seen[0].any() and seen[2].tolist() == [[5, 6]] * 3


def test_some_endpoints_need_the_token():
    with Triton(config=CONFIG) as triton:
        triton.bind("m", batch(lambda a: {"b": a}), A, B)
        client = httpclient.InferenceServerClient(f"127.0.0.1:{port(triton, 'http')}")
        assert client.is_model_ready("m")
        with pytest.raises(InferenceServerException):
            client.get_inference_statistics()
        token = {"triton-access-token": triton.get_access_token()}
        assert client.get_inference_statistics("m", headers=token)["model_stats"]
        client.close()


def test_the_environment_gives_settings(monkeypatch):
    monkeypatch.setenv("PYTRITON_TRITON_CONFIG_HTTP_PORT", "1234")
    monkeypatch.setenv("PYTRITON_TRITON_CONFIG_ALLOW_GRPC", "false")
    monkeypatch.setenv("PYTRITON_TRITON_CONFIG_CACHE_CONFIG_0", "local,size=1048576")

    found = Triton(config=TritonConfig(log_verbose=1))._config

    assert (found.http_port, found.allow_grpc, found.log_verbose) == (1234, False, 1)
    assert found.cache_config == ["local,size=1048576"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: TritonConfig(allow_http=False, allow_grpc=False),
        lambda: TritonSecurityConfig(restricted_endpoints=["none"]),
        lambda: Triton().bind("", len, A, B),
        lambda: Triton().bind("a b", len, A, B),
        lambda: Triton().bind("m", len, A, B, model_version=2),
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(PyTritonValidationError):
        wrong()


def test_a_server_starts_stops_and_starts_again():
    triton = Triton(config=CONFIG)
    triton.bind("m", batch(lambda a: {"b": a}), A, B)
    for _ in range(2):
        assert not triton.is_alive() and not triton.stop()
        triton.run()
        triton.run()
        triton.connect()
        assert triton.is_alive() and triton.is_connected()
        assert ask(triton, "m", a=ROWS)[0].tolist() == ROWS.tolist()
        assert triton.stop()
