"""Refused calls of models; and a child that sends invalid calls."""

import pytest

from core.errors import CoreError

MODES = ["process", "shared", "thread"]
EVERY_MODE = [*MODES, "inline"]
DOUBLE = """
def execute(self, requests):
    return [respond(x_of(request) * 2) for request in requests]
"""
GARBAGE = {
    "nothing": "(74, 1)",
    "no JSON": "(74, 1, struct.pack('<QQI', 0, 0, 2) + b'[]')",
    "no region": "(74, 1, struct.pack('<QQI', 2**40, 64, 4) + b'[[]]' + FIELDS)",
    "a tensor outside": (
        "(74, 1, struct.pack('<QQI', 0, 0, 24) + b'[[[\"x\", 11, [100], 400]]]' + FIELDS)"
    ),
    "a stop of nothing": "(75, 1)",
}


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_calls_outside_of_execute_are_refused(serve, mode):
    body = """
    def initialize(self, args):
        call("double", np.ones(1, np.float32)).exec()
    """
    early = {"early": (body, {"mode": mode})}
    models = await serve(double=(DOUBLE, {"mode": "inline"}), beside=early)

    with pytest.raises(CoreError, match=r"BLS is only supported during the 'execute' function\."):
        await models.server.models.load("early")


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

    assert not await models.server.models.check("caller")
    assert await models.ask("caller", 2) == [4]


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


@pytest.mark.parametrize("mode", MODES)
async def test_two_inputs_of_one_name_are_refused(serve, mode):
    body = """
    def execute(self, requests):
        x = pb_utils.Tensor("x", np.ones(1, np.float32))
        asked = pb_utils.InferenceRequest(
            model_name="double", inputs=[x, x], requested_output_names=["y"])
        error = asked.exec().error()
        return [respond(np.array([f"{error.code().name} {error.message()}"], object))]
    """
    models = await serve(
        double=(DOUBLE, {"mode": "inline"}), caller=(body, {"mode": mode, "datatype": "STRING"})
    )

    assert await models.tell("caller") == "INVALID_ARG input 'x' already exists in request"


@pytest.mark.parametrize("mode", MODES)
async def test_threads_of_a_model_may_call_others(serve, mode):
    body = """
    def execute(self, requests):
        found = []
        def work():
            found.append(y_of(call("double", x_of(requests[0])).exec()))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return [respond(found[0])]
    """
    models = await serve(double=(DOUBLE, {"mode": "inline"}), caller=(body, {"mode": mode}))

    assert await models.ask("caller", 2) == [4]
