"""Models that call other models of the same server, from a child and without one."""

import asyncio
import json
import os
import signal
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from backend_python import backend

from core.errors import CoreError
from core.options import Options
from core.request import InferenceRequest
from core.server import Server
from core.tensor import Tensor

MODES = ["process", "shared", "thread"]
EVERY_MODE = [*MODES, "inline"]

BASIS = """
import asyncio, gc, json, os, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils


def call(model, x, **fields):
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=["y"],
                                     inputs=[pb_utils.Tensor("x", x)], **fields)


def y_of(response):
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return pb_utils.get_output_tensor_by_name(response, "y").as_numpy()


def x_of(request):
    return pb_utils.get_input_tensor_by_name(request, "x").as_numpy()


def respond(y):
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.asarray(y))])


class TritonPythonModel:
"""
DOUBLE = """
def execute(self, requests):
    return [respond(x_of(request) * 2) for request in requests]
"""
ENDLESS = """
def execute(self, requests):  # until nobody waits
    sender = requests[0].get_response_sender()
    while not requests[0].is_cancelled():
        sender.send(respond(x_of(requests[0])))
        time.sleep(0.002)
    sender.send(flags=1)
"""
COUNT = """
def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for number in range(int(x_of(request)[0])):
            sender.send(respond(np.array([number], np.float32)))
        sender.send(flags=1)
"""
DEAF = """
def execute(self, requests):
    while not requests[0].is_cancelled():
        time.sleep(0.002)
    return [respond(x_of(request)) for request in requests]
"""

TOGETHER = """
def execute(self, requests):  # answers when eight instances have a request
    barrier = threading.__dict__.setdefault("barrier_of_the_test", threading.Barrier(8))
    barrier.wait(20)
    return [respond(x_of(request)) for request in requests]
"""


def write(repository, name, body, *, decoupled=False, mode="", count=1, datatype="FP32"):
    tensor = f"data_type: TYPE_{datatype} dims: [ -1 ]"
    config = (
        f'backend: "python" input [ {{ name: "x" {tensor} }} ] output [ {{ name: "y" {tensor} }} ]'
        f" instance_group [ {{ kind: KIND_CPU count: {count} }} ]"
    )
    if decoupled:
        config += " model_transaction_policy { decoupled: true }"
    if mode:
        config += f' parameters {{ key: "EXECUTION_MODE" value {{ string_value: "{mode}" }} }}'
    folder = repository / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (repository / name / "config.pbtxt").write_text(config)
    (folder / "model.py").write_text(BASIS + textwrap.indent(textwrap.dedent(body), "    "))


class Models:
    """A server and what tests ask of it."""

    def __init__(self, server):
        self.server = server

    def send(self, name, x, **fields):
        return self.server.infer(InferenceRequest(name, {"x": Tensor.of("x", x)}, **fields))

    async def ask(self, name, *x, **fields):
        response = await self.send(name, np.array(x, np.float32), **fields)
        return response.output("y").array.tolist()

    async def tell(self, name, what=""):
        response = await self.send(name, np.array([what], object))
        return response.output("y").array[0].decode()

    def version(self, name):
        return self.server._manager.resolve(name)

    def child(self, name):
        return self.version(name).chain._pool.workers[0].instance._way._connection.process

    async def idle(self, *names):
        """Wait until these models have no request any more."""
        await until(lambda: all(not self.version(name).chain.in_flight for name in names))


async def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


@pytest.fixture
async def serve(tmp_path):
    """Serve models: name=(body, options of `write`), or name=body; `beside` are not loaded."""
    servers = []

    async def start(trace_config=None, load_threads=4, beside=(), **models):
        for name, given in (*models.items(), *dict(beside).items()):
            body, options = given if isinstance(given, tuple) else (given, {})
            write(tmp_path, name, body, **options)
        options = Options.defaults(
            model_repository=[str(tmp_path)],
            model_control_mode="explicit",
            trace_config=trace_config or {},
            model_load_thread_count=load_threads,
        )
        server = Server(options, find_backend=lambda name: backend)
        servers.append(server)
        await server.start()
        for name in models:
            await server.load(name)
        return Models(server)

    yield start
    for server in servers:
        assert await server.stop(30) == 0


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_gives_the_other_models_answer(serve, mode):
    body = """
    def execute(self, requests):
        return [respond(y_of(call("double", x_of(r)).exec()) + 1) for r in requests]
    """
    models = await serve(double=DOUBLE, caller=(body, {"mode": mode}))

    assert await models.ask("caller", 1, 2) == [3, 5]


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_awaited_calls_run_side_by_side(serve, mode):
    body = """
    async def execute(self, requests):
        x = x_of(requests[0])
        found = await asyncio.gather(*[call("together", x + n).async_exec() for n in range(8)])
        return [respond(np.concatenate([y_of(each) for each in found]))]
    """
    models = await serve(
        together=(TOGETHER, {"mode": "thread", "count": 8}),
        caller=(body, {"mode": mode}),
    )

    assert await models.ask("caller", 1) == [1 + n for n in range(8)]


async def test_threads_of_a_model_get_their_own_answers(serve):
    body = """
    def execute(self, requests):
        wrong = []

        def work(n):
            for i in range(30):
                if y_of(call("double", np.array([n, i], np.float32)).exec()).tolist() != [2 * n, 2 * i]:
                    wrong.append((n, i))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [respond(np.array([len(wrong)], np.float32))]
    """
    models = await serve(double=(DOUBLE, {"mode": "inline"}), caller=body)

    assert await models.ask("caller", 1) == [0]


@pytest.mark.parametrize("mode", MODES)
async def test_calls_may_be_nested_deeper_than_any_pool(serve, mode):
    body = """
    def execute(self, requests):
        model = f"level{int(pb_utils.get_model_dir().split('/level')[-1].split('/')[0]) - 1}"
        return [respond(y_of(call(model, x_of(r)).exec()) + 1) for r in requests]
    """
    depth = 6 if mode == "process" else 40
    levels = {f"level{n}": (body, {"mode": mode}) for n in range(1, depth + 1)}
    models = await serve(level0=(DOUBLE, {"mode": "inline"}), **levels)

    answers = await asyncio.gather(*[models.ask(f"level{depth}", n) for n in range(20)])

    assert answers == [[2 * n + depth] for n in range(20)]


THOUSAND = {
    "one after another, on a thread": """
def execute(self, requests):
    return [respond(sum(y_of(call("relay", x_of(r)).exec()) for _ in range(1000)))
            for r in requests]
""",
    "on a thousand threads": """
def execute(self, requests):
    found = []
    def one(x):
        found.append(y_of(call("relay", x).exec()))
    threads = [threading.Thread(target=one, args=(x_of(requests[0]),)) for _ in range(1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [respond(sum(found))]
""",
    "in one coroutine": """
async def execute(self, requests):
    x = x_of(requests[0])
    answers = await asyncio.gather(*[call("relay", x).async_exec() for _ in range(1000)])
    return [respond(sum(map(y_of, answers)))]
""",
    "to a decoupled model": """
async def execute(self, requests):
    x = x_of(requests[0])
    streams = await asyncio.gather(
        *[call("count", x * 0 + 2).async_exec(decoupled=True) for _ in range(1000)])
    async def summed(stream):
        return sum([y_of(answer) async for answer in stream])
    return [respond(sum(await asyncio.gather(*map(summed, streams))) * 2 * x)]
""",
}


@pytest.mark.parametrize("way", THOUSAND)
async def test_a_thousand_calls_that_call_again_finish(serve, way):
    relay = """
    async def execute(self, requests):
        return [respond(y_of(await call("double", x_of(r)).async_exec())) for r in requests]
    """
    models = await serve(
        double=(DOUBLE, {"mode": "inline"}),
        relay=(relay, {"mode": "inline"}),
        count=(COUNT, {"mode": "thread", "decoupled": True}),
        caller=THOUSAND[way],
    )

    assert await models.ask("caller", 3) == [6000]


async def test_a_thousand_calls_pass_through_children_that_call_children(serve):
    relay = """
    def execute(self, requests):
        return [respond(y_of(call("double", x_of(r)).exec())) for r in requests]
    """
    models = await serve(double=DOUBLE, relay=relay, caller=THOUSAND["in one coroutine"])

    assert await models.ask("caller", 3) == [6000]


@pytest.mark.parametrize("mode", MODES)
async def test_loads_that_wait_for_loads_do_not_fill_the_places(serve, mode):
    chain = """
def initialize(self, args):
    name, number = args["model_name"].split("_")
    pb_utils.load_model("last" if number == "1" else f"{name}_{int(number) - 1}")

def execute(self, requests):
    return [respond(x_of(r)) for r in requests]
"""
    names = [f"{name}_{number}" for name in "abcd" for number in (1, 2, 3)]
    options = {"mode": mode, "count": 2}
    models = await serve(
        load_threads=1, beside={"last": DOUBLE, **{name: (chain, options) for name in names}}
    )

    await asyncio.gather(*[models.server.load(f"{name}_3") for name in "abcd"])

    assert all(models.server.model_ready(name) for name in (*names, "last"))


@pytest.mark.parametrize("mode", MODES)
async def test_large_tensors_pass_whole(serve, mode):
    body = """
    def execute(self, requests):
        x = x_of(requests[0])
        first = y_of(call("double", x).exec())
        second = y_of(call("double", x + 1).exec())  # while the first is held
        return [respond(np.array([(first == 2 * x).all(), (second == 2 * x + 2).all()], np.float32))]
    """
    models = await serve(double=DOUBLE, caller=(body, {"mode": mode}))
    x = np.arange(1_500_000, dtype=np.float32)

    for _ in range(3):
        response = await models.send("caller", x)
        assert response.output("y").array.tolist() == [1, 1]


@pytest.mark.parametrize("mode", MODES)
async def test_errors_come_as_responses_with_their_code(serve, mode):
    body = """
    def execute(self, requests):
        x = np.ones(1, np.float32)
        wrong = pb_utils.InferenceRequest(
            model_name="failing", inputs=[pb_utils.Tensor("z", x)], requested_output_names=[])
        calls = [call("nowhere", x), call("count", x), call("failing", x), wrong,
                 call("failing", x, model_version=7)]
        errors = [each.exec().error() for each in calls]
        found = [[error.code().name, error.message()] for error in errors]
        return [respond(np.array([json.dumps(found)], object))]
    """
    failing = """
    def execute(self, requests):
        error = pb_utils.TritonError("no room", pb_utils.TritonError.ALREADY_EXISTS)
        return [pb_utils.InferenceResponse(error=error) for request in requests]
    """
    models = await serve(
        failing=(failing, {"mode": "inline"}),
        count=(COUNT, {"decoupled": True, "mode": "thread"}),
        caller=(body, {"mode": mode, "datatype": "STRING"}),
    )

    found = json.loads(await models.tell("caller"))

    not_ready = "Failed for execute the inference request. Model '{}' is not ready."
    assert found[0] == ["NOT_FOUND", not_ready.format("nowhere")]
    assert found[1][0] == "UNSUPPORTED"
    assert found[1][1].startswith("Model 'count' is using the decoupled. The current BLS request")
    assert found[2] == ["ALREADY_EXISTS", "no room"]
    assert found[3][0] == "INVALID_ARG" and "'z'" in found[3][1]
    assert found[4] == ["NOT_FOUND", not_ready.format("failing")]


@pytest.mark.parametrize("mode", MODES)
async def test_all_fields_of_a_call_reach_the_called_model(serve, mode):
    body = """
    def execute(self, requests):
        asked = call("told", np.array([b""], object), request_id="i", correlation_id="s", flags=3,
                     timeout=9, parameters={"a": True, "b": 1.5}, trace=requests[0].trace(),
                     preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU))
        return [respond(y_of(asked.exec()))]
    """
    told = """
    def execute(self, requests):
        r = requests[0]
        found = [r.request_id(), r.correlation_id(), r.flags(), r.timeout(),
                 json.loads(r.parameters()), sorted(r.requested_output_names())]
        return [respond(np.array([json.dumps(found)], object))]
    """
    models = await serve(
        told=(told, {"datatype": "STRING"}),
        caller=(body, {"mode": mode, "datatype": "STRING"}),
    )

    found = await models.tell("caller")

    assert found == '["i", "s", 3, 9, {"a": true, "b": 1.5}, ["y"]]'


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_a_call_is_traced_with_the_request_whose_trace_it_carries(serve, tmp_path, mode):
    body = """
    async def execute(self, requests):
        x = x_of(requests[0])
        await call("double", x).async_exec()
        return [respond(y_of(await call("double", x, trace=requests[0].trace()).async_exec()))]
    """
    file = tmp_path / "trace.json"
    models = await serve(
        {"": [("rate", "1"), ("level", "TIMESTAMPS")], "triton": [("file", str(file))]},
        double=(DOUBLE, {"mode": "inline"}),
        caller=(body, {"mode": mode}),
    )

    await models.ask("caller", 1)
    await models.server.tracing.close()

    heads = [each for each in json.loads(file.read_text()) if "model_name" in each]
    assert [(each["model_name"], each.get("parent_id")) for each in heads] == [
        ("caller", None),
        ("double", heads[0]["id"]),
    ]


@pytest.mark.parametrize("mode", MODES)
async def test_a_decoupled_call_may_be_iterated_again(serve, mode):
    body = """
    def execute(self, requests):
        answers = call("count", x_of(requests[0])).exec(decoupled=True)
        first = next(answers)
        rest = [y_of(each)[0] for each in answers]
        again = [y_of(each)[0] for each in answers]
        return [respond(np.array([y_of(first)[0], -1, *rest, -1, *again], np.float32))]
    """
    models = await serve(
        count=(COUNT, {"decoupled": True, "mode": "thread"}), caller=(body, {"mode": mode})
    )

    assert await models.ask("caller", 3) == [0, -1, 1, 2, -1, 0, 1, 2]


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_answers_can_be_awaited_one_by_one(serve, mode):
    body = """
    async def execute(self, requests):
        async def total(n):
            answers = await call("count", np.array([n], np.float32)).async_exec(decoupled=True)
            return sum([y_of(each)[0] async for each in answers])

        return [respond(np.array(await asyncio.gather(*map(total, range(6))), np.float32))]
    """
    models = await serve(
        count=(COUNT, {"decoupled": True, "mode": "thread"}), caller=(body, {"mode": mode})
    )

    assert await models.ask("caller", 1) == [n * (n - 1) / 2 for n in range(6)]


@pytest.mark.parametrize("mode", MODES)
async def test_an_iterator_that_is_dropped_early_cancels_its_call(serve, tmp_path, mode):
    body = """
    def execute(self, requests):
        for response in call("endless", x_of(requests[0])).exec(decoupled=True):
            break
        while not os.path.exists(STOP):
            time.sleep(0.005)  # still executing: the end of execute is not what cancels
        return [respond(y_of(response))]
    """
    stop = str(tmp_path / "stop")
    models = await serve(
        endless=(ENDLESS, {"decoupled": True}),
        caller=(body.replace("STOP", repr(stop)), {"mode": mode}),
    )
    asked = asyncio.ensure_future(models.ask("caller", 5))
    try:
        await until(lambda: models.server.statistics("endless")[0]["execution_count"])
        await models.idle("endless")
        assert not asked.done()
    finally:
        Path(stop).touch()
        assert await asked == [5]


@pytest.mark.parametrize("mode", MODES)
async def test_an_iterator_that_is_cancelled_comes_to_its_end(serve, mode):
    body = """
    def execute(self, requests):
        answers = call("endless", x_of(requests[0])).exec(decoupled=True)
        next(answers)
        answers.cancel()
        for response in answers:
            pass
        answers.cancel()
        return [respond(x_of(requests[0]))]
    """
    models = await serve(endless=(ENDLESS, {"decoupled": True}), caller=(body, {"mode": mode}))

    assert await models.ask("caller", 1) == [1]
    await models.idle("endless")


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_a_coroutine_that_gives_up_cancels_its_call(serve, mode):
    body = """
    async def execute(self, requests):
        try:
            await asyncio.wait_for(call("deaf", x_of(requests[0])).async_exec(), 0.05)
        except asyncio.TimeoutError:
            return [respond(x_of(requests[0]))]
    """
    models = await serve(deaf=DEAF, caller=(body, {"mode": mode}))

    assert await models.ask("caller", 1) == [1]
    await models.idle("deaf")


async def test_the_calls_of_a_child_that_dies_are_cancelled(serve):
    body = """
    def execute(self, requests):
        return [respond(y_of(call("deaf", x_of(r)).exec())) for r in requests]
    """
    models = await serve(deaf=DEAF, caller=body)
    asked = asyncio.ensure_future(models.ask("caller", 1))
    await until(lambda: models.version("deaf").chain.in_flight)

    os.kill(models.child("caller").pid, signal.SIGKILL)

    with pytest.raises(CoreError, match="is not healthy"):
        await asked
    await models.idle("deaf")


@pytest.mark.parametrize("mode", MODES)
async def test_a_model_that_unloads_answers_the_call_in_flight_and_no_more(serve, mode):
    body = """
    def execute(self, requests):
        first = y_of(call("slow", x_of(requests[0])).exec())
        second = call("slow", x_of(requests[0])).exec()
        return [respond(np.array([first[0], second.has_error()], np.float32))]
    """
    slow = """
    def execute(self, requests):
        time.sleep(0.2)
        return [respond(x_of(request)) for request in requests]
    """
    models = await serve(slow=slow, caller=(body, {"mode": mode}))
    asked = asyncio.ensure_future(models.ask("caller", 4))
    await until(lambda: models.version("slow").chain.in_flight)

    await models.server.unload("slow")

    assert await asked == [4, 1]


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_calls_outside_of_execute_are_refused(serve, mode):
    body = """
    def initialize(self, args):
        call("double", np.ones(1, np.float32)).exec()
    """
    models = await serve(double=(DOUBLE, {"mode": "inline"}))
    write(Path(models.server.options.model_repository[0]), "early", body, mode=mode)

    with pytest.raises(CoreError, match=r"BLS is only supported during the 'execute' function\."):
        await models.server.load("early")


async def test_a_model_on_the_loop_must_await(serve):
    body = """
    def execute(self, requests):
        found = []
        for work in (lambda: call("double", np.ones(1, np.float32)).exec(),
                     lambda: pb_utils.load_model("double"),
                     lambda: pb_utils.is_model_ready("double")):
            try:
                found.append(str(work()))
            except pb_utils.TritonModelException as error:
                found.append(str(error).split(", on")[0])
        return [respond(np.array([";".join(found)], object))]
    """
    models = await serve(
        double=(DOUBLE, {"mode": "inline"}),
        caller=(body, {"mode": "inline", "datatype": "STRING"}),
    )

    assert await models.tell("caller") == (
        "'exec' would block the server's event loop;"
        "'load_model' would block the server's event loop;True"
    )


@pytest.mark.parametrize("mode", MODES)
async def test_a_request_of_a_client_cannot_be_executed_as_a_call(serve, mode):
    body = """
    def execute(self, requests):
        requests[0].exec()
    """
    models = await serve(caller=(body, {"mode": mode}))

    with pytest.raises(CoreError, match="make an InferenceRequest"):
        await models.ask("caller", 1)


async def test_a_call_waits_for_a_model_whose_child_is_started_again(serve, tmp_path):
    body = """
    def initialize(self, args):
        while os.path.exists(os.path.join(pb_utils.get_model_dir(), "wait")):
            time.sleep(0.01)
    """ + textwrap.indent(DOUBLE, "    ")
    caller = """
    def execute(self, requests):
        return [respond(y_of(call("slow", x_of(r)).exec())) for r in requests]
    """
    models = await serve(slow=body, caller=caller)
    wait = tmp_path / "slow" / "1" / "wait"
    wait.touch()
    os.kill(models.child("slow").pid, signal.SIGKILL)
    await until(lambda: not models.server.model_ready("slow"))

    asked = asyncio.ensure_future(models.ask("caller", 4))
    await until(lambda: models.version("slow").chain.in_flight)
    wait.unlink()

    assert await asked == [8]


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_is_ready_calls_no_other_models(serve, mode):
    body = """
    async def is_ready(self):
        await call("double", np.zeros(1, np.float32)).async_exec()
        return True

    async def execute(self, requests):
        answers = [await call("double", x_of(r)).async_exec() for r in requests]
        return [respond(y_of(answer)) for answer in answers]
    """
    models = await serve(double=DOUBLE, caller=(body, {"mode": mode}))

    assert not await models.server.check_model("caller")
    assert await models.ask("caller", 2) == [4]


LOADS = """
def work(self):
    source = open(__file__).read().split("class TritonPythonModel")[0]
    source += "class TritonPythonModel:\\n    def execute(self, requests):\\n"
    source += "        return [respond(x_of(r) + 7) for r in requests]\\n"
    config = {"backend": "python", "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}],
              "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1]}]}
    before = pb_utils.is_model_ready("made")
    pb_utils.load_model("made", config=json.dumps(config),
                        files={"file:1/model.py": source.encode()})
    return [before, pb_utils.is_model_ready("made", "1"), pb_utils.is_model_ready("made", "2")]
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("where", ["initialize", "execute"])
async def test_a_model_loads_and_unloads_another(serve, mode, where):
    body = {
        "initialize": """
def initialize(self, args):
    self.found = self.work()
""",
        "execute": "",
    }[where]
    body += """
def execute(self, requests):
    found = self.found if hasattr(self, "found") else self.work()
    y = y_of(call("made", x_of(requests[0])).exec())
    pb_utils.unload_model("made")
    found = [*found, pb_utils.is_model_ready("made"), y[0]]
    try:
        pb_utils.load_model("nowhere")
    except pb_utils.TritonModelException as error:
        found.append("nowhere" in str(error))
    return [respond(np.array(found, np.float32))]
"""
    models = await serve(caller=(LOADS + body, {"mode": mode}))

    assert await models.ask("caller", 1) == [0, 1, 0, 0, 8, 1]


async def test_no_region_is_left_when_all_calls_are_over(serve):
    body = """
    def execute(self, requests):
        x = np.ones(int(x_of(requests[0])[0]), np.float32)
        for _ in range(100):
            y_of(call("double", x).exec())
            call("nowhere", x).exec()
            for response in call("many", x).exec(decoupled=True):
                break
        del response
        gc.collect()
        time.sleep(0.3)  # what the dropped calls still send arrives with the next
        call("double", x).exec()
        from backend_python.api import host
        return [respond(np.array([host._process._connection._out.used], np.float32))]
    """
    many = """
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for _ in range(5):
                sender.send(respond(x_of(request)))
            sender.send(flags=1)
    """
    models = await serve(
        double=DOUBLE, many=(many, {"decoupled": True, "mode": "thread"}), caller=body
    )

    for size in (100, 100_000):
        (in_child,) = await models.ask("caller", size)
        assert in_child <= 2  # of the last call, told with the next message
        assert models.child("caller").inputs.used <= 1


GARBAGE = {
    "nothing": "(74, 1)",
    "no JSON": "(74, 1, struct.pack('<QQI', 0, 0, 2) + b'[]')",
    "no region": "(74, 1, struct.pack('<QQI', 2**40, 64, 4) + b'[[]]' + FIELDS)",
    "a tensor outside": (
        "(74, 1, struct.pack('<QQI', 0, 0, 24) + b'[[[\"x\", 11, [100], 400]]]' + FIELDS)"
    ),
    "a stop of nothing": "(75, 1)",
}


@pytest.mark.parametrize("message", GARBAGE.values(), ids=GARBAGE)
async def test_nonsense_in_a_call_ends_the_child_alone(serve, message):
    fields = b'["double",-1,false,"",0,0,0,"",[],null]'
    body = f"""
    def execute(self, requests):
        import struct
        from backend_python.api import host
        FIELDS = {fields!r}
        if x_of(requests[0])[0]:
            host._process._connection.send(*{message})
        return [respond(x_of(request)) for request in requests]
    """
    models = await serve(double=(DOUBLE, {"mode": "inline"}), caller=body)

    with pytest.raises(CoreError, match="is not healthy"):
        await models.ask("caller", 1)

    assert await models.ask("caller", 0) == [0]


async def test_models_of_one_worker_call_each_other(serve, children):
    sync = """
def execute(self, requests):
    return [respond(y_of(call("awaits", x_of(request)).exec()) + 1) for request in requests]
"""
    awaits = """
async def execute(self, requests):
    answers = [await call("double", x_of(request)).async_exec() for request in requests]
    return [respond(y_of(answer)) for answer in answers]
"""
    shared = {"mode": "shared"}
    models = await serve(double=(DOUBLE, shared), awaits=(awaits, shared), sync=(sync, shared))

    answers = await asyncio.gather(*(models.ask("sync", x) for x in range(8)))

    assert answers == [[2.0 * x + 1] for x in range(8)]
    assert len(children()) == 1
