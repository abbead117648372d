"""Models that fail, and those that answer with an error."""

import numpy as np
import pytest
from backend_python.api.errors import ErrorCode

from core import CoreError, Kind

MODES = ["process", "thread", "inline"]
RUN = """
    def execute(self, requests):
        found = {"pb_utils": pb_utils, "np": np, "requests": requests, "request": requests[0]}
        exec(requests[0].inputs()[0].as_numpy()[0].decode(), found)
        return found["result"]
"""
PREFIX = "Failed to process the request(s) for model 'm_0', message: "


@pytest.fixture(params=MODES)
async def run(serve, request):
    """Run a snippet in execute; return the response or the CoreError."""
    model = await serve(RUN, datatype="BYTES", mode=request.param)

    async def ask(code):
        try:
            return await model.ask({"x": np.array([code.encode()], object)})
        except CoreError as error:
            return error

    ask.model = model
    return ask


@pytest.mark.parametrize(
    "kind", [each for each in Kind if each.value in set(ErrorCode)], ids=lambda kind: kind.name
)
async def test_the_code_of_an_error_is_kept(run, kind):
    name = {"INVALID": "INVALID_ARG"}.get(kind.name, kind.name)
    found = await run(
        "result = [pb_utils.InferenceResponse(error=pb_utils.TritonError("
        f"'text', pb_utils.TritonError.{name}))]"
    )

    assert (found.kind, found.message) == (kind, "text")


async def test_an_error_response_counts_as_a_success_and_an_exception_as_a_failure(run):
    await run("result = [pb_utils.InferenceResponse(error=pb_utils.TritonError('x'))]")
    found = run.model.statistics
    assert (found.success.count, found.fail.count) == (1, 0)

    await run("1 / 0")
    assert (found.success.count, found.fail.count, found.failures["BACKEND"]) == (1, 1, 1)
    assert (found.execution_count, found.inference_count) == (2, 1)


async def test_an_exception_is_returned_with_type_text_and_place(run):
    found = await run("def f():\n  raise ValueError('boom')\nf()")

    file = run.model.model.python_file
    assert found.kind is Kind.INTERNAL
    head, _, places = found.message.partition("\n\nAt:\n")
    assert head == PREFIX + "ValueError: boom"
    first, second, third = places.splitlines()
    assert first == "  <string>(2): f"
    assert second == "  <string>(3): <module>"
    assert third.startswith(f"  {file}(") and third.endswith("): execute")


@pytest.mark.parametrize(
    "code,text",
    [
        ("class E(Exception): pass\nraise E()", "E: <EMPTY MESSAGE>"),
        ("raise KeyError('k')", "KeyError: 'k'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise pb_utils.TritonModelException('t')", "TritonModelException: t"),
        ("raise ValueError('two\\nlines ☃ \\ud800')", "ValueError: two\nlines ☃ ?"),
    ],
)
async def test_texts_of_exceptions(run, code, text):
    found = await run(code)

    assert found.message.startswith(PREFIX + text + "\n\nAt:\n")


@pytest.mark.parametrize("mode", MODES)
async def test_the_place_in_a_coroutine_is_the_models_own(serve, mode):
    model = await serve(
        "async def execute(self, requests):\n    raise ValueError('boom')", mode=mode
    )

    with pytest.raises(CoreError) as found:
        await model.y(1)

    head, _, places = found.value.message.partition("\n\nAt:\n")
    assert head == PREFIX + "ValueError: boom"
    assert len(places.splitlines()) == 1 and "model.py(" in places


@pytest.mark.parametrize(
    "result,text",
    [
        ("3", "Expected a list in the execute return, found type '<class 'int'>'."),
        ("None", "Expected a list in the execute return, found type '<class 'NoneType'>'."),
        ("()", "Expected a list in the execute return, found type '<class 'tuple'>'."),
        (
            "[]",
            "Number of InferenceResponse objects do not match the number of InferenceRequest "
            "objects. InferenceRequest(s) size is:1, and InferenceResponse(s) size is:0\n",
        ),
        (
            "[1]",
            "Expected an 'InferenceResponse' object in the execute function return list, found "
            "type '<class 'int'>'.",
        ),
    ],
)
async def test_an_invalid_response_fails_the_request(run, result, text):
    found = await run(f"result = {result}")

    assert found.message == PREFIX + text


async def test_no_answer_at_all_is_an_error_and_not_a_wait(run):
    found = await run("result = [None]")

    assert "without an answer" in found.message


async def test_after_a_failure_the_model_continues(run):
    await run("1 / 0")
    await run("result = 3")
    found = await run(
        "result = [pb_utils.InferenceResponse([pb_utils.Tensor('y', np.array([b'ok'], object))])]"
    )

    assert found.output("y").array.tolist() == [b"ok"]


@pytest.mark.parametrize(
    "code,text",
    [
        ("s.send()", "Inference Response object must be provided when the response flags is set to "
         "zero."),
        ("s.send(r, flags=5)", "Unable to send response. Unsupported flag provided."),
        ("s.send(flags=1)", "Unable to send response. Non-decoupled model cannot send complete "
         "final before sending a response."),
        ("s.send(r); s.send(r)", "Unable to send response. Non-decoupled model cannot send more "
         "than one response."),
        ("s.send(r, 1); s.send(r)", "Unable to send response. Response sender has been closed."),
    ],
)  # fmt: skip
async def test_misuse_of_a_sender_is_refused(run, code, text):
    found = await run(
        "s = request.get_response_sender()\nr = pb_utils.InferenceResponse([])\n"
        f"try:\n  {code}\nexcept pb_utils.TritonModelException as e:\n"
        "  result = [pb_utils.InferenceResponse(error=pb_utils.TritonError(str(e)))]\n"
        "  if s._sent: raise\n"
    )

    if isinstance(found, CoreError):
        assert text in found.message
    else:
        assert found.outputs == []  # the first answer went out before the mistake


async def test_calling_other_models_is_refused_with_a_text(run):
    found = await run(
        "pb_utils.InferenceRequest(model_name='n', inputs=[], requested_output_names=['a']).exec()"
    )

    assert "TritonModelException: calling other models (BLS) is not available" in found.message


async def test_a_missing_execute_is_an_error_when_it_is_called(serve):
    model = await serve("def initialize(self, args): pass")

    with pytest.raises(CoreError) as error:
        await model.y(1)

    assert error.value.message == (
        PREFIX + f"Python model {model.model.python_file} does not implement `execute` method."
    )


async def test_one_wrong_response_of_a_batch_fails_alone(serve):
    source = """
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(error=pb_utils.TritonError("odd"))
            if request.request_id() == "odd" else
            pb_utils.InferenceResponse([pb_utils.Tensor("y", request.inputs()[0].as_numpy())])
            for request in requests]
    """
    model = await serve(source, "max_batch_size: 8 dynamic_batching { }")
    x = {"x": np.ones((1, 1), np.float32)}
    replies = [model.ask(x, id="odd" if number % 2 else "even") for number in range(8)]

    for number, reply in enumerate(replies):
        if number % 2:
            with pytest.raises(CoreError, match="odd"):
                await reply
        else:
            assert (await reply).output("y").array.tolist() == [[1]]
