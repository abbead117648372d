"""Where native backends run: without the GIL, and from whatever thread they answer."""

import asyncio
import ctypes
import threading
import weakref

import numpy as np
import pytest
from core_testing.served import request_of

import core
from core.errors import CoreError
from core.request import RequestedOutput

X = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
DECOUPLED = "model_transaction_policy { decoupled: true }"
PATIENCE_S = 30


def until(condition):
    """Wait for what another thread does, in bounded time."""
    done = threading.Event()
    for _ in range(PATIENCE_S * 1000):
        if condition():
            return
        done.wait(0.001)
    raise AssertionError("it did not come")


def test_python_runs_while_a_backend_computes(serve, library):
    served = serve("waits")
    # PyDLL keeps the GIL: nothing but this thread could let the backend go on if it had held it.
    go = ctypes.PyDLL(library._name).player_go

    def meanwhile(server):
        async def let_go():
            until_inside()
            counted = sum(range(1000))
            go(1)
            return counted

        def until_inside():
            until(lambda: library.player_count(2))

        return let_go()

    (answer,) = served.while_asking([X], meanwhile)

    np.testing.assert_array_equal(answer["y"], X["x"])


def test_a_running_backend_sees_a_cancellation(serve, library):
    served = serve("waits")

    async def act():
        reply = served._server.models.infer(request_of(X, (), "example"))
        while not library.player_count(2):
            await asyncio.sleep(0.001)
        reply.cancel()
        return await reply

    with pytest.raises(CoreError) as cancelled:
        served._call(act())

    assert cancelled.value.kind.name == "CANCELLED"
    until(lambda: not library.player_count(2))


def test_answers_come_after_execute_has_returned(serve, library):
    served = serve("later", more="dynamic_batching { preferred_batch_size: 4 }")

    def let_go(server):
        async def act():
            # Its execution has been counted: execute has returned, and no answer was sent.
            while not int(server.control.health.statistics_here("example")[0]["execution_count"]):
                await asyncio.sleep(0.001)
            sent = library.player_count(3)
            await asyncio.get_running_loop().run_in_executor(None, library.player_go, 1)
            return sent

        return act()

    first, second = served.while_asking([X, {"x": -X["x"]}], let_go)

    np.testing.assert_array_equal(first["y"], X["x"])
    np.testing.assert_array_equal(second["y"], -X["x"])
    assert library.player_count(3) == 3  # CORE_INVALID: it had ended


def test_several_answers_of_a_decoupled_model_come_in_order(serve, library):
    library.player_go(1)
    served = serve("later_often", more=DECOUPLED)

    answers = served.stream(X)

    assert len(answers) == 3
    for answer in answers:
        np.testing.assert_array_equal(answer["y"], X["x"])


def test_a_decoupled_model_may_send_no_response(serve):
    assert serve("silent", more=DECOUPLED).stream(X) == []


def test_release_ends_the_responses_of_a_decoupled_model(serve):
    assert serve("released_unanswered", more=DECOUPLED).stream(X) == []


def test_the_common_output_skips_requests_with_their_own_response(serve):
    served = serve("first_later", more="dynamic_batching { preferred_batch_size: 4 }")

    first, second = served.together([X, {"x": -X["x"]}])

    assert isinstance(first, CoreError)
    assert (first.kind.name, first.message) == ("NOT_FOUND", "later")
    np.testing.assert_array_equal(second["y"], -X["x"])


class Message(bytearray):
    """Bytes whose release is visible."""


def test_no_batch_is_kept_after_all_responses(serve, library):
    library.player_go(1)
    served = serve("later")
    request = request_of(X, (), "example")
    message = Message(request.inputs["x"].raw)
    request.inputs["x"] = core.Tensor("x", request.inputs["x"].dtype, (2, 3), raw=message)
    gone = weakref.ref(message)
    del message

    served.send([request])
    request.inputs.clear()

    until(lambda: gone() is None)


@pytest.mark.parametrize("player", ["copy", "copy_each"])
@pytest.mark.parametrize("room", [24, 40])
def test_an_output_for_memory_of_the_client_is_written_there(serve, player, room):
    served = serve(player)
    region = bytearray(b"\xee" * room)
    request = request_of(X, (), "example")
    request.outputs = (RequestedOutput("y", memory=memoryview(region)),)
    request.shared = True

    (answer,) = served.send([request])

    assert not isinstance(answer, CoreError)
    assert region[:24] == X["x"].tobytes()
    assert region[24:] == b"\xee" * (room - 24)
    assert np.shares_memory(answer["y"], np.frombuffer(region, np.uint8))


def test_memory_of_the_client_that_is_too_small_is_refused(serve):
    served = serve("copy")
    region = bytearray(23)
    request = request_of(X, (), "example")
    request.outputs = (RequestedOutput("y", memory=memoryview(region)),)
    request.shared = True

    (answer,) = served.send([request])

    assert isinstance(answer, CoreError)
    assert "should be at least 24 bytes" in answer.message
    assert region == bytes(23)


def test_a_backend_accepts_inputs_that_are_not_aligned(serve):
    served = serve("copy")
    request = request_of(X, (), "example")
    message = memoryview(b"\0\0\0" + X["x"].tobytes())[3:]
    request.inputs["x"] = core.Tensor("x", request.inputs["x"].dtype, (2, 3), raw=message)

    (answer,) = served.send([request])

    np.testing.assert_array_equal(answer["y"], X["x"])


def test_responses_that_are_kept_do_not_change(serve):
    served = serve("copy")

    answers = [served.ask({"x": np.full((1, 50_000), n, np.float32)})["y"] for n in range(30)]

    assert [(answer.min(), answer.max()) for answer in answers] == [(n, n) for n in range(30)]
