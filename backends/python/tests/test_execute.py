"""Requests through a model, in a child and in the server's process: inputs and outputs match."""

import asyncio
import json

import numpy as np
import pytest
from backend_python.api import cuda

from core import dtypes
from core.request import RequestedOutput
from core.tensor import Tensor

DOUBLE = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", pb_utils.get_input_tensor_by_name(r, "x").as_numpy() * 2)]) for r in requests]
"""
IDENTITY = """
    def execute(self, requests):
        responses = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "x")
            try:
                answer = pb_utils.Tensor("y", tensor.as_numpy())
            except pb_utils.TritonModelException:  # BF16
                answer = pb_utils.Tensor.from_dlpack("y", tensor)
            responses.append(pb_utils.InferenceResponse([answer]))
        return responses
"""
ECHO = """
    def initialize(self, args):
        self.args = args

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([json.dumps(self.tell(r)).encode()], object))]) for r in requests]

    def tell(self, request):
        return {
            "id": request.request_id(), "correlation_id": request.correlation_id(),
            "flags": request.flags(), "timeout": request.timeout(),
            "parameters": json.loads(request.parameters()),
            "outputs": sorted(request.requested_output_names()),
            "trace": request.trace().get_context(), "cancelled": request.is_cancelled(),
            "directory": pb_utils.get_model_dir(),
            "args": {key: self.args[key] for key in self.args if key != "model_config"},
            "config": json.loads(self.args["model_config"])["name"],
        }
"""
BATCHING = "max_batch_size: 8 dynamic_batching { }"
MODES = ["process", "thread", "inline"]


def sample(dtype, shape):
    random = np.random.default_rng(0)
    if dtype is dtypes.BYTES:
        array = np.empty(shape, object)
        for i in range(array.size):
            array.flat[i] = random.bytes(i % 7)
        return Tensor.of("x", array)
    if dtype is dtypes.BOOL:
        return Tensor.of("x", random.integers(0, 2, shape).astype(bool))
    if dtype is dtypes.BF16:
        return Tensor.of("x", random.integers(0, 2**16, shape).astype(np.uint16), dtypes.BF16)
    return Tensor.of("x", random.integers(0, 100, shape).astype(dtype.numpy))


@pytest.mark.parametrize("mode", MODES)
async def test_a_model_answers(serve, mode):
    model = await serve(DOUBLE, mode=mode)

    assert await model.y(1, 2, 3) == [2, 4, 6]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
async def test_every_datatype_comes_back_as_it_went_in(serve, dtype, mode):
    model = await serve(IDENTITY, datatype=dtype.name, dims="-1, -1", mode=mode)

    for shape in ((2, 3), (1, 1), (0, 3), (40, 500)):
        sent = sample(dtype, shape)
        answer = (await model.ask({"x": sent})).output("y")

        assert (answer.dtype, tuple(answer.shape)) == (dtype, shape)
        assert answer.array.tolist() == sent.array.tolist()


@pytest.mark.parametrize("mode", MODES)
async def test_bytes_may_hold_any_bytes_and_text_becomes_utf8(serve, mode):
    source = """
    def execute(self, requests):
        x = requests[0].inputs()[0].as_numpy()
        assert x.tolist() == [b"a\\0", b"", "\\u2603".encode()], x
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([x[0], "\\u2603", 7, None], object))])]
    """
    model = await serve(source, datatype="BYTES", mode=mode)

    answer = await model.ask({"x": np.array([b"a\0", b"", "☃".encode()], object)})

    assert answer.output("y").array.tolist() == [b"a\0", "☃".encode(), b"7", b"None"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_model_may_take_its_requests_out_of_the_list(serve, mode):
    source = """
    def execute(self, requests):
        responses = []
        while requests:
            x = requests.pop(0).inputs()[0].as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x * 2)]))
        return responses
    """
    model = await serve(source, mode=mode)

    assert await model.y(1, 2, 3) == [2, 4, 6]


@pytest.mark.parametrize("mode", MODES)
async def test_a_scalar_is_a_scalar(serve, mode):
    config = """
        input [ { name: "x" data_type: TYPE_INT32 dims: [ 1 ] reshape: { shape: [ ] } } ]
        output [ { name: "y" data_type: TYPE_INT32 dims: [ 1 ] reshape: { shape: [ ] } } ]
    """
    source = """
    def execute(self, requests):
        x = requests[0].inputs()[0].as_numpy()
        assert x.shape == (), x.shape
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array(x + 1, np.int32))])]
    """
    model = await serve(source, config=config, mode=mode)

    answer = await model.ask({"x": np.array([41], np.int32)})

    assert answer.output("y").array.tolist() == [42]


async def test_sixty_four_megabytes_go_both_ways(serve):
    model = await serve(IDENTITY)
    sent = np.arange(1 << 24, dtype=np.float32)

    first = (await model.ask({"x": sent})).output("y").array
    second = (await model.ask({"x": sent[::-1]})).output("y").array

    assert np.array_equal(second, sent[::-1])
    assert np.array_equal(first, sent)  # not overwritten by the second answer


async def test_the_loop_turns_while_a_large_input_is_copied_and_computed(serve):
    model = await serve(DOUBLE)
    turns = 0

    async def count():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await model.ask({"x": np.zeros(1 << 24, np.float32)})
    counting.cancel()

    assert turns > 50


async def test_an_answer_outlives_the_answers_after_it(serve):
    model = await serve(IDENTITY)
    kept = []
    for number in range(20):
        sent = np.full(1 << (number % 2 * 4 + 14), number, np.float32)  # copied, and viewed
        kept.append((sent, (await model.ask({"x": sent})).output("y")))

    for sent, answer in kept:
        assert np.array_equal(answer.array, sent)


async def test_an_answer_outlives_its_model(serve):
    model = await serve(IDENTITY)
    sent = np.arange(1 << 20, dtype=np.float32)
    answer = (await model.ask({"x": sent})).output("y")

    await model.chain.close()

    assert np.array_equal(answer.array, sent)


async def test_a_model_may_keep_and_change_its_inputs(serve):
    source = """
    def initialize(self, args):
        self.kept = []

    def execute(self, requests):
        x = requests[0].inputs()[0].as_numpy()
        self.kept.append(x)
        x += 1
        total = sum(float(each[0]) for each in self.kept)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([total], np.float32))])]
    """
    model = await serve(source)
    totals = []
    for number in range(8):
        size = 1 << (20 if number % 2 else 4)
        answer = await model.ask({"x": np.full(size, number, np.float32)})
        totals.append(answer.output("y").array[0])

    assert totals == [sum(range(1, number + 2)) for number in range(8)]


@pytest.mark.parametrize("mode", MODES)
async def test_fields_of_the_request_reach_the_model(serve, mode):
    config = """
        input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
        output [ { name: "z" data_type: TYPE_FP32 dims: [ 1 ] },
                 { name: "y" data_type: TYPE_STRING dims: [ 1 ] } ]
    """
    model = await serve(ECHO, config=config, mode=mode)

    async def told(**fields):
        answer = await model.ask({"x": np.zeros(1, np.float32)}, **fields)
        return json.loads(answer.output("y").array[0])

    full = await told(
        id="mine",
        correlation_id=2**64 - 1,
        flags=3,
        timeout_us=5,
        parameters={"a": 1, "b": True, "c": "x", "d": 1.5, "e": -(2**63)},
        outputs=(RequestedOutput("y"),),
    )
    assert full["id"] == "mine" and full["correlation_id"] == 2**64 - 1
    assert (full["flags"], full["timeout"]) == (3, 5)
    assert full["parameters"] == {"a": 1, "b": True, "c": "x", "d": 1.5, "e": -(2**63)}
    assert full["outputs"] == ["y"]
    assert (await told(correlation_id="text"))["correlation_id"] == "text"
    plain = await told()
    assert (plain["id"], plain["correlation_id"], plain["parameters"]) == ("", 0, {})
    assert plain["outputs"] == ["y", "z"] and plain["trace"] is None and not plain["cancelled"]
    assert plain["directory"] == str(model.model.path)
    assert plain["config"] == "m"
    assert plain["args"] == {
        "model_instance_kind": "CPU",
        "model_instance_name": "m_0",
        "model_instance_device_id": "0",
        "model_repository": str(model.model.directory),
        "model_version": "1",
        "model_name": "m",
    }


@pytest.mark.parametrize("mode", MODES)
async def test_requests_of_a_batch_get_their_own_answers_in_order(serve, mode):
    model = await serve(DOUBLE, BATCHING, mode=mode)

    replies = [
        model.ask({"x": np.full((1 + number % 3, 1 + number // 100), number, np.float32)})
        for number in range(200)
    ]
    answers = [(await reply).output("y").array for reply in replies]

    for number, answer in enumerate(answers):
        assert answer.shape == (1 + number % 3, 1 + number // 100)
        assert (answer == 2 * number).all()
    assert model.statistics.execution_count < 120


async def test_two_instances_work_at_the_same_time(serve, children):
    source = """
    def execute(self, requests):
        time.sleep(0.3)
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([os.getpid()], np.float32))]) for _ in requests]
    """
    model = await serve(source, "instance_group [ { count: 2 kind: KIND_CPU } ]")

    pids = await asyncio.gather(model.y(1), model.y(1))

    assert sorted(pids) == sorted([[float(pid)] for pid in children()])


@pytest.mark.parametrize("mode", MODES)
async def test_only_wanted_outputs_leave_the_model(serve, mode):
    source = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor(name, np.ones(2, np.float32)) for name in ("z", "y", "surplus")])]
    """
    more = (
        'output [ { name: "z" data_type: TYPE_FP32 dims: [ 2 ] } ] '
        'parameters { key: "CHECK_OUTPUTS" value { string_value: "false" } }'
    )
    model = await serve(source, more, mode=mode)
    x = {"x": np.zeros(1, np.float32)}

    everything = await model.ask(x)
    only_z = await model.ask(x, outputs=(RequestedOutput("z"),))

    assert sorted(tensor.name for tensor in everything.outputs) == ["y", "z"]
    assert [tensor.name for tensor in only_z.outputs] == ["z"]


@pytest.mark.parametrize("mode", MODES)
async def test_parameters_of_a_response_reach_the_client(serve, mode):
    source = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([], parameters={"a": 1, "b": "x", "c": True})]
    """
    model = await serve(source, mode=mode)

    answer = await model.ask({"x": np.zeros(1, np.float32)})

    assert answer.parameters == {"a": 1, "b": "x", "c": True}


@pytest.mark.parametrize("mode", MODES)
async def test_execute_may_be_a_coroutine(serve, mode):
    source = """
    async def execute(self, requests):
        import asyncio
        self.lock = getattr(self, "lock", None) or asyncio.Lock()
        async with self.lock:  # of the same event loop in each batch
            await asyncio.sleep(0.001)
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", requests[0].inputs()[0].as_numpy() + 1)])]
    """
    model = await serve(source, mode=mode)

    assert await model.y(1) == [2]
    assert await model.y(2) == [3]


@pytest.mark.parametrize("mode", MODES)
async def test_a_response_sender_may_answer_an_ordinary_model(serve, mode):
    source = """
    def execute(self, requests):
        for request in requests:
            answer = pb_utils.InferenceResponse([pb_utils.Tensor(
                "y", request.inputs()[0].as_numpy() + 1)])
            sender = request.get_response_sender()
            if request.request_id() == "later":
                threading.Timer(0.05, lambda: sender.send(answer, flags=1)).start()
            elif request.request_id() == "apart":
                sender.send(answer)
                sender.send(flags=1)
            else:
                sender.send(answer, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return [None for _ in requests]
    """
    model = await serve(source, mode=mode)

    assert await model.y(1) == [2]
    assert await model.y(2, id="apart") == [3]
    assert await model.y(3, id="later") == [4]


@pytest.mark.parametrize("mode", MODES)
async def test_execute_may_return_nothing_where_response_senders_answer(serve, mode):
    source = """
    def execute(self, requests):
        for request in requests:
            answer = pb_utils.InferenceResponse([pb_utils.Tensor(
                "y", request.inputs()[0].as_numpy() + 1)])
            sender = request.get_response_sender()
            if request.request_id() == "later":
                threading.Timer(0.05, lambda: sender.send(answer, flags=1)).start()
            else:
                sender.send(answer, flags=1)
    """
    model = await serve(source, mode=mode)

    assert await model.y(1) == [2]
    assert await model.y(2, id="later") == [3]
    assert (model.statistics.success.count, model.statistics.fail.count) == (2, 0)


async def test_a_module_next_to_the_model_is_found_and_classes_can_be_pickled(serve, folder):
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "beside.py").write_text("NUMBER = 5\n")
    source = """
    class Kept:
        pass

    def execute(self, requests):
        import pickle
        import beside
        pickle.loads(pickle.dumps(Kept()))
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([beside.NUMBER], np.float32))])]
    """
    model = await serve(
        source.replace("    class Kept:\n        pass\n", "").replace("Kept()", "0")
    )

    assert await model.y(1) == [5]


@pytest.mark.parametrize("mode", MODES)
async def test_times_of_execute_are_those_of_the_model(serve, mode):
    model = await serve(
        DOUBLE.replace("requests):", "requests):\n        time.sleep(0.5)", 1), mode=mode
    )
    await model.y(1)

    found = model.statistics
    assert found.compute_infer.ns > 0.49e9
    assert found.compute_input.ns + found.compute_output.ns < found.compute_infer.ns
    assert (found.execution_count, found.inference_count, found.success.count) == (1, 1, 1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("decoupled", [False, True])
async def test_an_answer_in_the_memory_of_a_gpu_is_copied_out(serve, mode, decoupled, monkeypatch):
    monkeypatch.setattr(cuda, "copy_to_host", cuda.copy_to_host)  # the model changes it
    # The host's memory plays the GPU's: copies of CUDA's driver are plain copies.
    source = """
    def initialize(self, args):
        import ctypes
        from backend_python.api import cuda, dlpack
        cuda.copy_to_host = lambda address, size, device: np.frombuffer(
            ctypes.string_at(address, size), np.uint8)
        self.lend = dlpack.lend

    def execute(self, requests):
        answers = []
        for request in requests:
            y = request.inputs()[0].as_numpy() * 2
            steps = tuple(step // y.itemsize for step in y.strides)
            capsule = self.lend(y.ctypes.data, y.shape, steps, 11, (2, 0), y)
            answer = pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("y", capsule)])
            if not pb_utils.using_decoupled_model_transaction_policy(self.config):
                answers.append(answer)
                continue
            sender = request.get_response_sender()
            sender.send(answer)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return answers or None

    config = {"model_transaction_policy": {"decoupled": DECOUPLED}}
    """.replace("DECOUPLED", str(decoupled))
    model = await serve(source, "max_batch_size: 4", mode=mode, decoupled=decoupled)

    x = np.array([[1, 2, 3]], np.float32)
    answers = [answer async for answer in model.ask({"x": x})]

    found = [each.output("y").array.tolist() for each in answers if each.outputs]
    assert found == [[[2, 4, 6]]]
