"""Calls end with the requests that they belong to: by a cancellation, and by a deadline."""

import asyncio
import gc
import time

import numpy as np
import pytest
from backend_python.server import bls

from core.errors import DeadlineExceeded
from core.request import InferenceRequest
from core.tensor import Tensor
from frontends.shared.deadline import infer_with_deadline

MODES = ["process", "shared", "thread"]
CANCELLED = "7 the request that this call belongs to was cancelled"
DEADLINE = "7 Deadline Exceeded"
# Writes its start and its end.
POLLS = """
def execute(self, requests):
    tell("inner begins")
    end = time.monotonic() + 20
    while not requests[0].is_cancelled() and time.monotonic() < end:
        time.sleep(0.002)
    tell("inner is cancelled" if requests[0].is_cancelled() else "inner waited in vain")
    return [respond(0 * x_of(request)) for request in requests]
"""
DEAF = """
def execute(self, requests):
    tell("inner begins")
    while not os.path.exists(STOP):
        time.sleep(0.002)
    return [respond(0 * x_of(request)) for request in requests]
"""
# A calling model for a request: an expression for the response of the called model.
CALLS = {
    "exec": "inner(request).exec()",
    "on a thread": "on_thread(lambda: inner(request).exec())",
    "in a pool": "self.pool.submit(lambda: inner(request).exec()).result()",
    "decoupled": "list(inner(request).exec(decoupled=True))[-1]",
    "with a trace": "inner(request, trace=request.trace()).exec()",
    "awaited": "await inner(request).async_exec()",
    "in a task": "await asyncio.create_task(awaited(inner(request)))",
    "gathered": "(await asyncio.gather(*[inner(request).async_exec() for _ in range(3)]))[-1]",
}
CALLER = """
def initialize(self, args):
    from concurrent.futures import ThreadPoolExecutor
    self.pool = ThreadPoolExecutor(1)
    self.pool.submit(time.time).result()  # its thread is there before any request

{begin} execute(self, requests):
    def inner(request, **fields):
        return call("inner", x_of(request), **fields)

    def on_thread(function):
        found = []
        thread = threading.Thread(target=lambda: found.append(function()))
        thread.start()
        thread.join()
        return found[0]

    async def awaited(request):
        return await request.async_exec()

    for request in requests:
        response = {call}
        error = response.error()
        tell(f"caller sees {{int(error.code())}} {{error.message()}}" if error else "caller sees an answer")
    return [respond(0 * x_of(request)) for request in requests]
"""
BATCHES = (
    "max_batch_size: 2 "
    "dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 5000000 }"
)
EVERY = [(mode, call) for mode in MODES for call in CALLS]
EVERY += [("inline", call) for call in CALLS if "await" in CALLS[call]]


class Told:
    """The lines that models have written, in a file."""

    def __init__(self, path):
        self.path = path
        path.touch()

    def lines(self):
        return self.path.read_text().splitlines()

    async def until(self, *lines):
        end = time.monotonic() + 30
        while not all(line in self.lines() for line in lines):
            assert time.monotonic() < end, self.lines()
            await asyncio.sleep(0.005)


@pytest.fixture
def told(tmp_path_factory):
    return Told(tmp_path_factory.mktemp("told") / "told")


@pytest.fixture
def caller(serve, told):
    """Serve the models `inner` and `caller`."""

    async def start(mode, call, inner=POLLS, **options):
        body = CALLER.format(
            call=CALLS.get(call, call),
            begin="async def" if "await" in CALLS.get(call, call) else "def",
        )
        return await serve(
            inner=(with_tell(inner, told), {"mode": "thread", "count": 3}),
            caller=(with_tell(body, told), {"mode": mode, **options}),
        )

    return start


def with_tell(body, told):
    """Return the body of a model whose `tell` writes a line; STOP is a file that the test makes."""
    write = f"(lambda line: open({str(told.path)!r}, 'a').write(line + chr(10)))("
    return body.replace("tell(", write).replace("STOP", repr(f"{told.path}.stop"))


def request(**fields):
    return InferenceRequest("caller", {"x": Tensor.of("x", np.ones(1, np.float32))}, **fields)


def in_time(models, seconds):
    """Ask with a deadline, as frontends do."""
    asked = request(deadline_ns=time.monotonic_ns() + int(seconds * 1e9))
    return infer_with_deadline(models.server.models.infer, asked)


@pytest.mark.parametrize("mode, call", EVERY)
async def test_a_call_is_cancelled_with_the_request_that_it_belongs_to(caller, told, mode, call):
    models = await caller(mode, call)
    reply = models.server.models.infer(request())
    await told.until("inner begins")

    reply.cancel()

    await told.until("inner is cancelled", f"caller sees {CANCELLED}")
    await models.idle("inner", "caller")
    assert "inner waited in vain" not in told.lines()
    assert models.version("inner").chain.statistics.failures["CANCELED"] >= 1


@pytest.mark.parametrize("mode, call", EVERY)
async def test_a_deadline_is_handed_on(caller, told, mode, call):
    models = await caller(mode, call)

    with pytest.raises(DeadlineExceeded):
        await in_time(models, 0.5)

    await told.until("inner is cancelled", f"caller sees {DEADLINE}")
    await models.idle("inner", "caller")


@pytest.mark.parametrize("mode, call", [*[(mode, "exec") for mode in MODES], ("inline", "awaited")])
async def test_the_caller_does_not_wait_for_a_model_that_does_not_look(caller, told, mode, call):
    models = await caller(mode, call, DEAF)
    reply = models.server.models.infer(request())
    await told.until("inner begins")

    reply.cancel()

    await told.until(f"caller sees {CANCELLED}")
    await models.idle("caller")
    assert models.version("inner").chain.in_flight == 1
    open(f"{told.path}.stop", "w").close()
    await models.idle("inner")


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_that_waits_in_a_queue_leaves_it(caller, told, mode):
    models = await caller(mode, "exec", DEAF)
    filling = [
        models.server.models.infer(
            InferenceRequest("inner", {"x": Tensor.of("x", np.ones(1, np.float32))})
        )
        for _ in range(3)
    ]
    await models.until(lambda: not models.version("inner").chain.pending)

    with pytest.raises(DeadlineExceeded):
        await in_time(models, 0.3)

    await told.until(f"caller sees {DEADLINE}")
    assert models.version("inner").chain.pending == 0
    open(f"{told.path}.stop", "w").close()
    await asyncio.gather(*(_of(reply) for reply in filling))


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_that_begins_too_late_is_refused(caller, told, mode):
    call = "[inner(request).exec() for _ in range(2)][-1]"
    models = await caller(mode, call)
    reply = models.server.models.infer(request())
    await told.until("inner begins")

    reply.cancel()

    await told.until(f"caller sees {CANCELLED}")
    await models.idle("inner", "caller")
    assert told.lines().count("inner begins") == 1


@pytest.mark.parametrize("mode", MODES)
async def test_an_execution_with_one_waiting_client_continues(serve, told, mode):
    """In a batch of two requests, a call with the trace of one of them ends with that request."""
    body = CALLER.format(
        begin="def",
        call="inner(requests[0], **({'trace': request.trace()} if request.request_id() else {})).exec()",
    )
    models = await serve(
        inner=(with_tell(DEAF, told), {"mode": "thread", "more": "max_batch_size: 2"}),
        caller=(with_tell(body, told), {"mode": mode, "more": BATCHES}),
    )
    x = {"x": Tensor.of("x", np.ones((1, 1), np.float32))}
    gone = models.server.models.infer(InferenceRequest("caller", dict(x)))
    stays = models.server.models.infer(InferenceRequest("caller", dict(x), id="traced"))
    await told.until("inner begins")

    gone.cancel()
    await asyncio.sleep(0.1)
    assert told.lines() == ["inner begins"]
    open(f"{told.path}.stop", "w").close()

    await _of(stays)
    assert told.lines().count("caller sees an answer") == 2


@pytest.mark.parametrize("mode", MODES)
async def test_a_request_keeps_nothing_of_the_calls_that_are_over(caller, told, mode):
    echo = "def execute(self, requests):\n    return [respond(x_of(each)) for each in requests]"
    wait = "[each for each in iter(lambda: time.sleep(0.01) or os.path.exists(STOP), True)]"
    models = await caller(
        mode, f"[inner(request).exec() for _ in range(50)][-1]; tell('called'); {wait}", echo
    )
    asked = asyncio.ensure_future(_of(models.server.models.infer(request())))
    await told.until("called")

    gc.collect()
    bound = [each for each in gc.get_objects() if isinstance(each, bls._Bound)]
    open(f"{told.path}.stop", "w").close()
    await asked

    assert len(bound) <= 1
    assert told.lines()[-1] == "caller sees an answer"


async def _of(reply):
    return await reply
