"""Outputs are compared with the configuration, unless a flag disables that."""

import numpy as np
import pytest
from backend_python import backend

from core import CoreError, Kind

MODES = ["process", "shared", "thread", "inline"]
CONFIG = """
    max_batch_size: 8
    input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
    output [ { name: "y" data_type: TYPE_INT32 dims: [ -1, 2 ] },
             { name: "z" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } },
             { name: "s" data_type: TYPE_STRING dims: [ 1 ] } ]
"""
# The request has an expression for each output of the model.
GIVES = """
    def execute(self, requests):
        found = []
        for request in requests:
            given = eval(json.loads(request.parameters())["given"])
            response = pb_utils.InferenceResponse(
                [pb_utils.Tensor(name, array) for name, array in given.items()])
            if json.loads(request.parameters()).get("sends"):
                request.get_response_sender().send(response, flags=1)
                response = None
            found.append(response)
        return found
"""
GOOD = [
    "{'y': np.zeros((2, 5, 2), np.int32)}",
    "{'y': np.zeros((2, 0, 2), np.int32), 'z': np.zeros(2, np.float32)}",
    "{'s': np.array([['a'], ['b']], object)}",
    "{}",
]
HINT = (
    "; --backend-config=python,check-outputs=false turns this check off for all models, the parameter "
    "CHECK_OUTPUTS in config.pbtxt, set to false, for one"
)
BAD = {
    "{'y': np.zeros((2, 5, 2))}": "model 'm' gave output 'y' as FP64, its configuration says INT32",
    "{'s': np.zeros((2, 1), np.float32)}": "model 'm' gave output 's' as FP32, its configuration says BYTES",
    "{'y': np.zeros((3, 5, 2), np.int32)}": "model 'm' gave output 'y' with shape [3, 5, 2] for a batch of "
    "2 rows: the first dimension must be 2",
    "{'y': np.zeros((), np.int32)}": "model 'm' gave output 'y' with shape [] for a batch of 2 rows: the "
    "first dimension must be 2",
    "{'y': np.zeros((2, 5, 3), np.int32)}": "model 'm' gave output 'y' with shape [2, 5, 3], its "
    "configuration says [rows, -1, 2]",
    "{'y': np.zeros((2, 2), np.int32)}": "model 'm' gave output 'y' with shape [2, 2], its configuration "
    "says [rows, -1, 2]",
    "{'z': np.zeros((2, 1), np.float32)}": "model 'm' gave output 'z' with shape [2, 1], its configuration "
    "says [rows]",
    "{'y': np.zeros((2, 1, 2), np.int32), 'Y': np.zeros(1)}": "unexpected inference output 'Y' for model "
    "'m'; its configuration has ['s', 'y', 'z']",
}
UNCHECKED = ' parameters { key: "CHECK_OUTPUTS" value { string_value: "false" } }'


@pytest.fixture(autouse=True)
def _name(monkeypatch):
    """Name the backend as the server does."""
    monkeypatch.setattr(backend, "name", "python")


def ask(model, given, **parameters):
    x = np.zeros((2, 1), np.float32)
    return model.ask({"x": x}, parameters={"given": given, **parameters})


async def only(reply):
    async for item in reply:
        return item


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sends", [False, True])
async def test_the_model_gets_the_configuration(serve, mode, sends):
    model = await serve(GIVES, config=CONFIG, mode=mode)

    for given in GOOD:
        response = await ask(model, given, sends=sends)
        assert [each.name for each in response.outputs] == list(eval(given))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sends", [False, True])
async def test_something_else_is_an_error_and_counts_as_a_failure(serve, mode, sends):
    model = await serve(GIVES, config=CONFIG, mode=mode)

    for given, text in BAD.items():
        with pytest.raises(CoreError) as error:
            await ask(model, given, sends=sends)
        assert (error.value.kind, error.value.message) == (Kind.INTERNAL, text + HINT)

    assert model.statistics.failures["BACKEND"] == len(BAD)
    assert model.statistics.success.count == 0


@pytest.mark.parametrize("mode", MODES)
async def test_an_output_that_is_not_requested_is_not_read(serve, mode):
    from core.request import RequestedOutput

    model = await serve(GIVES, config=CONFIG, mode=mode)
    reply = model.ask(
        {"x": np.zeros((2, 1), np.float32)},
        parameters={"given": "{'y': np.zeros(1), 's': np.array([['a'], ['b']], object)}"},
        outputs=(RequestedOutput("s"),),
    )

    assert [each.name for each in (await reply).outputs] == ["s"]


@pytest.mark.parametrize("mode", MODES)
async def test_the_others_of_a_batch_have_their_answers(serve, mode):
    model = await serve(
        GIVES,
        "dynamic_batching { preferred_batch_size: 6 max_queue_delay_microseconds: 500000 }",
        config=CONFIG,
        mode=mode,
    )
    bad = "{'y': np.zeros((2, 5, 2))}"

    replies = [ask(model, each) for each in (GOOD[0], bad, GOOD[0])]
    found = [await only(reply) for reply in replies]

    assert [isinstance(each, CoreError) for each in found] == [False, True, False]
    assert model.statistics.execution_count == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_stream_may_answer_row_by_row_and_continues_after_an_error(serve, mode):
    source = """
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for array in (np.zeros((1, 4, 2), np.int32), np.zeros((1, 4, 2)), np.ones((1, 1, 2), np.int32)):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", array)]))
            sender.send(flags=1)
    """
    model = await serve(source, config=CONFIG, mode=mode, decoupled=True)

    found = [item async for item in model.ask({"x": np.zeros((2, 1), np.float32)})]

    assert [isinstance(each, CoreError) for each in found] == [False, True, False]
    assert found[1].message.startswith("model 'm' gave output 'y' as FP64")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("by", ["parameter", "setting"])
async def test_a_flag_restores_the_behaviour_of_triton(serve, mode, by, monkeypatch):
    if by == "setting":
        monkeypatch.setitem(backend.config, "check-outputs", "false")
    model = await serve(GIVES, UNCHECKED if by == "parameter" else "", config=CONFIG, mode=mode)

    wrong = await ask(model, "{'y': np.zeros((3, 5))}")
    unknown = await ask(model, "{'Y': np.zeros(1)}")

    assert (wrong.output("y").dtype.name, wrong.output("y").shape) == ("FP64", (3, 5))
    assert unknown.outputs == []


async def test_the_parameter_outranks_the_setting(serve, monkeypatch):
    monkeypatch.setitem(backend.config, "check-outputs", "false")
    model = await serve(GIVES, UNCHECKED.replace("false", "yes"), config=CONFIG)

    with pytest.raises(CoreError, match="as FP64, its configuration says INT32"):
        await ask(model, "{'y': np.zeros((2, 5, 2))}")


async def test_an_invalid_value_is_refused_at_the_load(serve):
    with pytest.raises(CoreError) as error:
        await serve(GIVES, UNCHECKED.replace("false", "maybe"), config=CONFIG)

    assert error.value.message == (
        "model 'm': parameter CHECK_OUTPUTS is 'maybe': expected true or false"
    )
