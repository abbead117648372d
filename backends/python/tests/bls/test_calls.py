"""Models that call other models of the same server, from a child and without one."""

import asyncio
import json

import numpy as np
import pytest

MODES = ["process", "shared", "thread"]
EVERY_MODE = [*MODES, "inline"]
DOUBLE = """
def execute(self, requests):
    return [respond(x_of(request) * 2) for request in requests]
"""
COUNT = """
def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for number in range(int(x_of(request)[0])):
            sender.send(respond(np.array([number], np.float32)))
        sender.send(flags=1)
"""


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_gives_the_other_models_answer(serve, mode):
    body = """
    def execute(self, requests):
        return [respond(y_of(call("double", x_of(r)).exec()) + 1) for r in requests]
    """
    models = await serve(double=DOUBLE, caller=(body, {"mode": mode}))

    assert await models.ask("caller", 1, 2) == [3, 5]


async def test_the_client_may_name_the_model_and_its_output(serve):
    # Elements of BYTES tensors are bytes, and are passed on unchanged.
    body = """
    def execute(self, requests):
        name = x_of(requests[0])[0]
        asked = pb_utils.InferenceRequest(
            model_name=name, requested_output_names=[b"y"], request_id=name,
            inputs=[pb_utils.Tensor(b"x", np.ones(1, np.float32))])
        return [respond(np.array([str(y_of(asked.exec()))], object))]
    """
    models = await serve(double=DOUBLE, caller=(body, {"datatype": "STRING"}))

    assert await models.tell("caller", "double") == "[2.]"


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
async def test_a_call_with_a_trace_context_is_traced_with_that_request(serve, tmp_path, mode):
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
