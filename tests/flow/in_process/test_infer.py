"""Asking a server in this process, from threads."""

import gc
import signal
import threading
import weakref

import numpy as np
import pytest
from flow.in_process.conftest import PATIENCE_S, ROW, Asking, until

import core
from frontends.in_process import Timeout


def asked(server):
    """How many requests the server has that are not over."""
    return len(server._dispatcher.pending)


def test_an_array_goes_in_and_an_array_comes_out(server, x):
    server.bind("double", lambda x: 2 * x, **ROW)

    answer = server.infer("double", {"x": x})

    np.testing.assert_array_equal(answer["y"], 2 * x)
    assert (answer.model_name, answer.model_version) == ("double", 1)


@pytest.mark.parametrize("placement", ["thread", "inline", "auto"])
def test_a_model_sees_the_memory_of_the_callers_array(server, x, placement):
    seen = []
    server.bind("see", lambda x: seen.append(x) or x.copy(), placement=placement, **ROW)

    server.infer("see", {"x": x})

    assert np.shares_memory(seen[0], x)


@pytest.mark.parametrize("placement", ["thread", "inline", "auto"])
def test_the_caller_gets_the_memory_of_the_models_array(server, x, placement):
    given = np.ones(4, np.float32)
    server.bind("give", lambda x: given, placement=placement, **ROW)

    assert np.shares_memory(server.infer("give", {"x": x})["y"], given)


def test_an_input_returned_by_a_model_is_the_callers_memory_and_read_only(server, x):
    server.bind("pass", lambda x: x, **ROW)

    y = server.infer("pass", {"x": x})["y"]

    assert np.shares_memory(y, x)
    assert not y.flags.writeable


@pytest.mark.parametrize("placement", ["thread", "inline"])
def test_arrays_are_released_with_their_response(server, placement):
    server.bind("pass", lambda x: x, placement=placement, **ROW)
    gc.disable()
    try:
        x = np.zeros(3, np.float32)
        seen = weakref.ref(x)
        server.infer("pass", {"x": x})
        next(server.stream("pass", {"x": x}))
        del x

        until(lambda: seen() is None)
    finally:
        gc.enable()


def test_text_goes_in_and_out(server):
    def shout(text):
        return np.array([each.decode().upper() for each in text], object)

    server.bind("shout", shout, inputs={"text": (str, [-1])}, outputs={"loud": (bytes, [-1])})

    assert server.infer("shout", {"text": ["a", b"b"]})["loud"].tolist() == [b"A", b"B"]


def test_only_the_outputs_that_are_wanted_come(server, x):
    outputs = {"y": ("FP32", [-1]), "z": ("FP32", [-1])}
    server.bind("two", lambda x: (x, -x), inputs=ROW["inputs"], outputs=outputs)

    assert list(server.infer("two", {"x": x})) == ["y", "z"]
    assert list(server.infer("two", {"x": x}, outputs=["z"])) == ["z"]


def test_the_request_carries_its_id_and_parameters(server, x):
    seen = []

    def see(x, requests):
        seen.extend(requests)
        return x

    server.bind("see", see, requests=True, **ROW)

    answer = server.infer("see", {"x": x}, id="mine", parameters={"a": 1}, timeout=PATIENCE_S)

    assert answer.id == "mine"
    assert seen[0].parameters == {"a": 1}
    assert seen[0].deadline_ns > 0


def test_refusals_have_the_kinds_and_texts_of_the_server(server, x):
    server.bind("one", lambda x: x, **ROW)

    with pytest.raises(core.CoreError, match="'none' is not found") as unknown:
        server.infer("none", {"x": x})
    with pytest.raises(core.CoreError, match="expects 'FP32'") as wrong:
        server.infer("one", {"x": x.astype(np.int8)})
    with pytest.raises(core.CoreError, match="version 2") as version:
        server.infer("one", {"x": x}, version=2)

    kinds = [each.value.kind for each in (unknown, wrong, version)]
    assert kinds == [core.Kind.NOT_FOUND, core.Kind.INVALID, core.Kind.NOT_FOUND]


def test_requests_of_many_threads_share_a_batch(server, gate):
    server.bind("gate", gate, batching=True, **ROW)
    first = Asking(lambda: server.infer("gate", {"x": np.zeros((1, 2), np.float32)}))
    assert gate.began.wait(PATIENCE_S)

    rows = [np.full((1, 2), number, np.float32) for number in range(1, 7)]
    threads = [Asking(lambda row=row: server.infer("gate", {"x": row})["y"]) for row in rows]
    until(lambda: asked(server) == 7)
    gate.open()

    for row, thread in zip(rows, threads, strict=True):
        np.testing.assert_array_equal(thread.result, row)
    assert first.result["y"].shape == (1, 2)
    assert [len(batch) for batch in gate.batches] == [1, 6]
    assert server.statistics("gate")[0]["execution_count"] == 2


def test_each_thread_gets_its_own_answer(server):
    server.bind("double", lambda x: 2 * x, batching=True, **ROW)

    def ask(number):
        found = []
        for i in range(100):
            row = np.full((1, 1), 1000 * number + i, np.float32)
            found.append(float(server.infer("double", {"x": row})["y"][0, 0]))
        return found

    threads = [Asking(lambda number=number: ask(number)) for number in range(6)]

    for number, thread in enumerate(threads):
        assert thread.result == [2.0 * (1000 * number + i) for i in range(100)]


def test_an_error_of_a_batch_is_raised_separately_for_each_caller(server, gate):
    def fail(x):
        gate(x)
        raise ValueError("no luck")

    server.bind("fail", fail, batching=True, **ROW)
    row = np.zeros((1, 1), np.float32)
    threads = [Asking(lambda: server.infer("fail", {"x": row})) for _ in range(3)]
    until(lambda: asked(server) == 3)
    gate.open()

    errors = [thread.result for thread in threads]
    assert {str(error) for error in errors} == {"model 'fail' failed: ValueError: no luck"}
    assert len(set(map(id, errors))) == 3
    assert all(isinstance(error.__cause__, ValueError) for error in errors)


def test_a_timeout_ends_the_waiting_and_cancels_the_request(server, endless, x):
    with pytest.raises(TimeoutError) as late:
        server.infer("endless", {"x": x}, timeout=0.01)

    assert isinstance(late.value, Timeout)
    assert isinstance(late.value, core.CoreError)
    assert late.value.kind is core.Kind.UNAVAILABLE
    assert str(late.value) == (
        "model 'endless' did not answer within 0.01 s; the request is cancelled"
    )
    assert endless.cancelled.wait(PATIENCE_S)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timeout_without_time_is_refused(server, x, seconds):
    with pytest.raises(core.CoreError, match="seconds above 0"):
        server.infer("m", {"x": x}, timeout=seconds)


@pytest.fixture
def interruptible():
    """SIGINT is KeyboardInterrupt; a shell that starts the tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_waiting_and_cancels_the_request(server, endless, x):
    main = threading.main_thread().ident

    def press():
        assert endless.began.wait(PATIENCE_S)
        signal.pthread_kill(main, signal.SIGINT)

    pressing = Asking(press)
    with pytest.raises(KeyboardInterrupt):
        server.infer("endless", {"x": x})

    assert pressing.result is None
    assert endless.cancelled.wait(PATIENCE_S)


def test_a_model_with_several_answers_is_not_for_infer(server):
    def count(n):
        yield from (np.array([i], np.int32) for i in range(int(n[0])))

    spec = ("INT32", [1])
    server.bind("count", count, inputs={"n": spec}, outputs={"i": spec})

    assert server.infer("count", {"n": np.array([1], np.int32)})["i"] == [0]
    for number in (0, 3):
        with pytest.raises(core.CoreError, match=f"expected a single response, got {number}"):
            server.infer("count", {"n": np.array([number], np.int32)})


def test_a_function_on_a_thread_calls_other_models(server, x):
    server.bind("double", lambda x: 2 * x, **ROW)
    server.bind("four", lambda x: server.infer("double", {"x": 2 * x})["y"], **ROW)

    np.testing.assert_array_equal(server.infer("four", {"x": x})["y"], 4 * x)


def test_a_function_on_the_servers_thread_cannot_wait_for_the_server(server, x):
    server.bind("double", lambda x: 2 * x, **ROW)
    server.bind("stuck", lambda x: server.infer("double", {"x": x})["y"], placement="inline", **ROW)

    with pytest.raises(core.CoreError, match="this is the server's own thread"):
        server.infer("stuck", {"x": x})


def test_sequences_are_identified_by_id_and_flags(server):
    sums = {}

    def add(x, START, ID):
        found = []
        for value, start, number in zip(x[:, 0], START[:, 0], ID[:, 0], strict=True):
            sums[number] = value + (0 if start else sums.get(number, 0))  # 0 of an empty slot
            found.append([sums[number]])
        return np.array(found, np.float32)

    control = [
        {
            "name": "START",
            "control": [{"kind": "CONTROL_SEQUENCE_START", "int32_false_true": [0, 1]}],
        },
        {
            "name": "ID",
            "control": [{"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_UINT64"}],
        },
    ]
    server.bind(
        "sum",
        lambda **inputs: add(**inputs),
        inputs={"x": ("FP32", [1])},
        outputs={"y": ("FP32", [1])},
        batching=True,
        config={"sequence_batching": {"control_input": control}},
    )

    def send(value, **flags):
        answer = server.infer("sum", {"x": np.array([[value]], np.float32)}, **flags)
        return float(answer["y"][0, 0])

    assert send(1, correlation_id=7, sequence_start=True) == 1
    assert send(10, correlation_id=8, sequence_start=True) == 10
    assert send(2, correlation_id=7) == 3
    assert send(20, correlation_id=8, sequence_end=True) == 30
