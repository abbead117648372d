"""repeat and square: a request determines the number of responses."""

import asyncio
import time

import numpy as np
import pytest
from backend_testing import repeat, square
from core_testing.served import request_of

from core.errors import CoreError

DECOUPLED = "model_transaction_policy { decoupled: true }\n"
REPEAT = DECOUPLED + (
    'backend: "repeat" max_batch_size: 0\n'
    'input { name: "IN" data_type: TYPE_INT32 dims: [-1] }\n'
    'input { name: "DELAY" data_type: TYPE_UINT32 dims: [-1] }\n'
    'input { name: "WAIT" data_type: TYPE_UINT32 dims: [1] }\n'
    'output { name: "OUT" data_type: TYPE_INT32 dims: [1] }\n'
    'output { name: "IDX" data_type: TYPE_UINT32 dims: [1] }\n'
    "instance_group { kind: KIND_CPU count: 1 }\n"
)
SQUARE = DECOUPLED + (
    'backend: "square" max_batch_size: 0\n'
    'input { name: "IN" data_type: TYPE_INT32 dims: [1] }\n'
    'output { name: "OUT" data_type: TYPE_INT32 dims: [1] }\n'
    "instance_group { kind: KIND_CPU count: 1 }\n"
)
LONG_MS = 3_600_000


def repeated(values, delays=None, wait=0):
    return {
        "IN": np.array(values, np.int32),
        "DELAY": np.array([0] * len(values) if delays is None else delays, np.uint32),
        "WAIT": np.array([wait], np.uint32),
    }


def squared(count):
    return {"IN": np.array([count], np.int32)}


def parameters(**values):
    return "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
        for name, value in values.items()
    )


def items(served, inputs):
    """Return all answers and errors to one request, in order."""

    async def collect():
        reply = served._server.models.infer(request_of(inputs, (), "example"))
        return [item async for item in reply]

    return served._call(collect())


@pytest.mark.parametrize("values", [[], [5], [4, -2, 4, 2**31 - 1]])
def test_each_element_is_an_answer(serve, values):
    served = serve(repeat, REPEAT)

    answers = served.stream(repeated(values))

    assert [(int(a["OUT"][0]), int(a["IDX"][0])) for a in answers] == [
        (value, index) for index, value in enumerate(values)
    ]


def test_requests_are_answered_concurrently(serve):
    served = serve(repeat, REPEAT)

    async def overtake():
        server = served._server
        slow = server.models.infer(request_of(repeated([1, 2], [0, LONG_MS]), (), "example"))
        first = slow.__aiter__()
        assert (await first.__anext__()).output("OUT").array.tolist() == [1]
        # The only instance has continued, since WAIT was over.
        quick = server.models.infer(request_of(repeated([3]), (), "example"))
        found = [item.output("OUT").array.tolist() async for item in quick]
        slow.cancel()
        await first.aclose()
        return found

    assert served._call(overtake()) == [[3]]


def test_the_next_request_waits_until_wait_is_over(serve):
    served = serve(repeat, REPEAT)

    async def act():
        server = served._server
        slow = server.models.infer(request_of(repeated([1], wait=LONG_MS), (), "example"))
        assert [item.output("IDX").array.tolist() async for item in slow] == [[0]]
        quick = server.models.infer(request_of(repeated([3]), (), "example"))
        answer = asyncio.ensure_future(_only(quick))
        for _ in range(50):
            await asyncio.sleep(0)
        waits = not answer.done()
        slow.cancel()  # drop the rest of WAIT
        return waits, await answer

    assert served._call(act()) == (True, [3])


async def _only(reply):
    (item,) = [item async for item in reply]
    return item.output("OUT").array.tolist()


def test_in_and_delay_must_have_the_same_length(serve):
    with pytest.raises(
        CoreError, match=r"expected IN and DELAY shape to match, got \[2\] and \[1\]"
    ):
        serve(repeat, REPEAT).stream(repeated([1, 2], [0]))


@pytest.mark.parametrize("count", [0, 1, 5, 300])
def test_square_sends_as_many_answers_as_in(serve, count):
    answers = serve(square, SQUARE).stream(squared(count))

    assert [int(answer["OUT"][0]) for answer in answers] == [count] * count


def test_requests_of_a_batch_are_answered_one_by_one(serve):
    batching = "dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: 3 }"
    served = serve(square, SQUARE.replace("max_batch_size: 0", "max_batch_size: 4") + batching)

    streams = served.streams([{"IN": np.array([[n]], np.int32)} for n in (2, 0, 3)])

    assert [len(stream) for stream in streams] == [2, 0, 3]
    # An execution ends shortly after its last answer.
    while served.statistics()["inference_count"] < 3:
        time.sleep(0.001)
    assert served.executions() == 1
    assert streams[0][0]["OUT"].shape == (1, 1)


def test_a_request_with_two_rows_is_refused(serve):
    served = serve(square, SQUARE.replace("max_batch_size: 0", "max_batch_size: 4"))

    with pytest.raises(CoreError, match="a request to square has one row"):
        served.stream({"IN": np.array([[1], [2]], np.int32)})


def test_a_negative_number_of_answers_is_refused(serve):
    with pytest.raises(CoreError, match="IN is negative"):
        serve(square, SQUARE).stream(squared(-1))


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ({"CUSTOM_FAIL_COUNT": 2}, "aaaff"),
        ({"CUSTOM_EMPTY_COUNT": 2}, "aaa"),
        ({"CUSTOM_FAIL_COUNT": 1, "CUSTOM_EMPTY_COUNT": 3}, "af"),
        ({"CUSTOM_FAIL_COUNT": 9}, "fffff"),
        ({"CUSTOM_EMPTY_COUNT": 9}, ""),
        ({"CUSTOM_FAIL_COUNT": "many", "CUSTOM_INFER_DELAY_NS": 1000}, "aaaaa"),
        ({"CUSTOM_OUTPUT_DELAY_NS": 1000}, "aaaaa"),
    ],
)
def test_the_last_answers_fail_or_are_omitted(serve, counts, found):
    served = serve(square, SQUARE + parameters(**counts))

    answers = items(served, squared(5))

    assert "".join("f" if isinstance(a, CoreError) else "a" for a in answers) == found
    errors = {(a.kind.name, a.message) for a in answers if isinstance(a, CoreError)}
    assert errors <= {("UNKNOWN", "simulated failure")}


def test_a_model_unloads_after_its_client_has_disconnected(serve):
    served = serve(square, SQUARE + parameters(CUSTOM_INFER_DELAY_NS=LONG_MS * 1_000_000))

    async def leave():
        reply = served._server.models.infer(request_of(squared(5), (), "example"))
        await asyncio.sleep(0)
        reply.cancel()

    served._call(leave())
    served.unload()


def test_cleaning_up_after_a_disconnected_client_takes_time(serve):
    cleaning_ms = 300
    served = serve(
        square,
        SQUARE
        + parameters(
            CUSTOM_INFER_DELAY_NS=LONG_MS * 1_000_000,
            CUSTOM_CANCEL_DELAY_NS=cleaning_ms * 1_000_000,
        ),
    )

    async def leave():
        reply = served._server.models.infer(request_of(squared(5), (), "example"))
        await asyncio.sleep(0.05)
        reply.cancel()

    served._call(leave())
    begun = time.monotonic()
    served.unload()  # waits for the thread of the answers

    assert time.monotonic() - begun > cleaning_ms / 1000 - 0.05


@pytest.mark.parametrize(
    ("backend", "config", "message"),
    [
        (repeat, REPEAT.replace('"IDX"', '"IX"'), r"outputs \['IX', 'OUT'\], the backend has"),
        (
            repeat,
            REPEAT.replace("max_batch_size: 0", "max_batch_size: 2"),
            "repeat answers request by request",
        ),
        (square, SQUARE.replace("INT32", "INT64"), r"input 'IN' is INT64\[1\], the backend has"),
        (square, SQUARE.replace("[1]", "[2]"), r"input 'IN' is INT32\[2\], the backend has"),
    ],
)
def test_another_configuration_is_refused(serve, backend, config, message):
    with pytest.raises(CoreError, match=message):
        serve(backend, config)
