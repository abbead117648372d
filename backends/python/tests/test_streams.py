"""Decoupled models: any number of answers, from any thread, and their cancellation."""

import asyncio

import numpy as np
import pytest
from backend_python.system import PORTABLE

from core import CoreError, Kind
from core.backlog import EACH_ANSWERS, MOST_ANSWERS

MODES = ["process", "thread", "inline"]
REPEAT = """
    def execute(self, requests):
        for request in requests:
            arguments = (request.get_response_sender(), request.inputs()[0].as_numpy(),
                         request.request_id())
            if "thread" in request.request_id():
                threading.Thread(target=self.send, args=arguments).start()
            else:
                self.send(*arguments)

    def send(self, sender, values, mode):
        for i, value in enumerate(values):
            if value < 0:
                answer = pb_utils.InferenceResponse(error=pb_utils.TritonError(
                    f"error {-value:.0f}", pb_utils.TritonError.NOT_FOUND))
            else:
                answer = pb_utils.InferenceResponse(
                    [pb_utils.Tensor("y", np.array([value], np.float32))], parameters={"i": i})
            if "last" in mode and i == len(values) - 1:
                sender.send(answer, flags=1)
                return
            sender.send(answer)
            if "raise" in mode:
                raise ValueError("after the first")
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


async def collect(reply):
    """Return every item of a reply: the value of y, or the error."""
    found = []
    async for item in reply:
        found.append(item if isinstance(item, CoreError) else item.output("y").array[0])
    return found


def x(*values):
    return {"x": np.array(values, np.float32)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("id", ["", "last", "thread", "thread last"])
async def test_each_answer_comes_once_and_in_order(serve, mode, id):
    model = await serve(REPEAT, decoupled=True, mode=mode)

    assert await collect(model.ask(x(*range(50)), id=id)) == list(range(50))
    assert model.statistics.success.count == 1
    await model.chain.close()  # the last answer may be there before execute has returned
    assert model.statistics.execution_count == 1


@pytest.mark.parametrize("mode", MODES)
async def test_no_answer_at_all_is_allowed(serve, mode):
    model = await serve(REPEAT, decoupled=True, mode=mode)

    assert await collect(model.ask(x())) == []


@pytest.mark.parametrize("mode", MODES)
async def test_an_error_does_not_end_the_answers(serve, mode):
    model = await serve(REPEAT, decoupled=True, mode=mode)

    first, error, last = await collect(model.ask(x(1, -2, 3)))

    assert (first, last) == (1, 3)
    assert (error.kind, error.message) == (Kind.NOT_FOUND, "error 2")


@pytest.mark.parametrize("mode", MODES)
async def test_parameters_come_with_each_answer(serve, mode):
    model = await serve(REPEAT, decoupled=True, mode=mode)

    found = [item.parameters async for item in model.ask(x(5, 6))]

    assert found == [{"i": 0}, {"i": 1}]


@pytest.mark.parametrize("mode", MODES)
async def test_an_exception_ends_the_open_requests(serve, mode):
    model = await serve(REPEAT, decoupled=True, mode=mode)

    first, error = await collect(model.ask(x(1, 2), id="raise"))

    assert first == 1
    assert error.message.startswith(
        "Failed to process the request(s) for model 'm_0', message: ValueError: after the first"
    )
    assert await collect(model.ask(x(4))) == [4]
    assert model.statistics.fail.count == 1


@pytest.mark.parametrize("mode", MODES)
async def test_sending_after_the_last_answer_is_refused(serve, mode):
    source = """
    def execute(self, requests):
        sender = requests[0].get_response_sender()
        sender.send(flags=1)
        for flags in (0, 1):
            try:
                sender.send(pb_utils.InferenceResponse([]), flags=flags)
            except pb_utils.TritonModelException as error:
                pb_utils.Logger.log_error(str(error))
    """
    model = await serve(source, decoupled=True, mode=mode)
    import logging

    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logging.getLogger("core").addHandler(handler)
    try:
        assert await collect(model.ask(x(1))) == []
        await asyncio.sleep(0.05)
    finally:
        logging.getLogger("core").removeHandler(handler)

    text = "Unable to send response. Response sender has been closed."
    assert [record.getMessage() for record in records] == [text, text]


async def test_answers_come_before_execute_has_returned(serve, folder):
    source = """
    def execute(self, requests):
        sender = requests[0].get_response_sender()
        y = pb_utils.Tensor("y", np.ones(1, np.float32))
        sender.send(pb_utils.InferenceResponse([y]))
        while not os.path.exists(os.path.join(pb_utils.get_model_dir(), "seen")):
            time.sleep(0.01)
        sender.send(flags=1)
    """
    model = await serve(source, decoupled=True)

    async for _ in model.ask(x(1)):
        (folder / "1" / "seen").touch()  # without which execute would never return


async def test_requests_of_many_threads_do_not_mix(serve):
    model = await serve(REPEAT, decoupled=True)
    replies = [
        model.ask(x(*range(number, number + 40)), id="thread last") for number in range(0, 800, 40)
    ]
    found = await asyncio.gather(*(collect(reply) for reply in replies))

    assert found == [list(range(number, number + 40)) for number in range(0, 800, 40)]


@pytest.mark.skipif(PORTABLE, reason="only /proc shows the memory of a process")
async def test_a_long_stream_does_not_grow_the_shared_memory(serve, children):
    source = """
    def execute(self, requests):
        sender = requests[0].get_response_sender()
        for i in range(2000):
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor(
                "y", np.full(1024, i, np.float32))]))
        sender.send(flags=1)
    """
    model = await serve(source, decoupled=True)

    assert await collect(model.ask(x(1))) == list(range(2000))
    (pid,) = children()
    with open(f"/proc/{pid}/smaps") as maps:
        sizes = [line.split() for line in maps if "memfd:responses" in line]
    start, end = sizes[0][0].split("-")
    assert int(end, 16) - int(start, 16) <= 16 << 20  # of 8 MB that were sent


async def test_large_answers_of_a_stream_are_right_and_released(serve):
    source = """
    def execute(self, requests):
        sender = requests[0].get_response_sender()
        for i in range(40):
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor(
                "y", np.full(1 << 18, i, np.float32))]))
        sender.send(flags=1)
    """
    model = await serve(source, decoupled=True)
    kept = [item.output("y") async for item in model.ask(x(1))]

    for i, tensor in enumerate(kept):
        assert (tensor.array == i).all()


@pytest.mark.parametrize("mode", ["process", "thread"])
async def test_coroutines_of_a_decoupled_model_overlap(serve, mode):
    source = """
    async def execute(self, requests):
        import asyncio
        for request in requests:
            sender = request.get_response_sender()
            value = request.inputs()[0].as_numpy()[0]
            if value < 0:
                raise ValueError("negative")
            await asyncio.sleep(0.5 if value == 0 else 0.01)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor(
                "y", np.array([value], np.float32))]), flags=1)
    """
    model = await serve(source, decoupled=True, mode=mode)
    order = []

    async def one(value):
        order.append((await collect(model.ask(x(value))))[0])

    await asyncio.gather(*(one(value) for value in (0, 1, 2)))
    assert order == [1, 2, 0]

    (error,) = await collect(model.ask(x(-1)))
    assert "ValueError: negative" in error.message


WAIT = """
    def initialize(self, args):
        self.seen = []

    def execute(self, requests):
        for request in requests:
            if request.request_id() == "inside":
                self.wait(request, request.get_response_sender())
            elif request.request_id() == "seen":
                request.get_response_sender().send(pb_utils.InferenceResponse([pb_utils.Tensor(
                    "y", np.array([len(self.seen)], np.float32))]), flags=1)
            else:
                threading.Thread(
                    target=self.wait, args=(request, request.get_response_sender())).start()

    def wait(self, request, sender):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if sender.is_cancelled():
                assert request.is_cancelled()
                self.seen.append(1)
                break
            time.sleep(0.01)
        sender.send(flags=1)
"""


@pytest.mark.parametrize("mode", ["process", "thread"])
@pytest.mark.parametrize("id", ["inside", "beside"])
async def test_a_running_model_sees_that_its_request_is_cancelled(serve, mode, id):
    model = await serve(WAIT, decoupled=True, mode=mode)
    reply = model.ask(x(1), id=id)
    await asyncio.sleep(0.2)

    reply.cancel()

    async def seen():
        return (await collect(model.ask(x(1), id="seen")))[0]

    for _ in range(100):
        if await seen():
            break
        await asyncio.sleep(0.02)
    assert await seen() == 1


async def test_a_cancelled_ordinary_request_is_seen_too(serve):
    source = """
    def execute(self, requests):
        end = time.monotonic() + 5
        while time.monotonic() < end and not requests[0].is_cancelled():
            time.sleep(0.01)
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([requests[0].is_cancelled()], np.float32))])]
    """
    model = await serve(source)
    loop = asyncio.get_running_loop()
    reply = model.ask(x(1))
    await asyncio.sleep(0.1)
    start = loop.time()

    reply.cancel()
    await asyncio.wait([asyncio.ensure_future(_outcome(reply))])

    assert loop.time() - start < 2


async def _outcome(reply):
    try:
        return await reply
    except CoreError as error:
        return error


async def test_death_ends_every_open_stream(serve, children):
    source = """
    def execute(self, requests):
        if requests[0].request_id() == "die":
            os._exit(1)
        self.kept = getattr(self, "kept", []) + [r.get_response_sender() for r in requests]
        self.kept[-1].send(pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.ones(1, np.float32))]))
    """
    model = await serve(source, decoupled=True)
    waiting = [asyncio.create_task(collect(model.ask(x(1)))) for _ in range(3)]
    await asyncio.sleep(0.2)

    await collect(model.ask(x(1), id="die"))

    for found in await asyncio.gather(*waiting):
        assert found[0] == 1
        assert found[1].message == "Stub process 'm_0' is not healthy."


COUNTING = """
    sent = 0

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            if request.request_id() == "stream":
                threading.Thread(target=self.stream, args=(sender,)).start()
            else:
                self.answer(sender)
                sender.send(flags=1)

    def stream(self, sender):
        while self.sent < 100_000 and not sender.is_cancelled():
            self.answer(sender)
            self.sent += 1
        sender.send(flags=1)

    def answer(self, sender):
        sender.send(pb_utils.InferenceResponse(
            [pb_utils.Tensor("y", np.array([self.sent], np.float32))]))
"""


@pytest.mark.parametrize("mode", ["process", "thread"])
async def test_a_model_waits_for_a_client_that_does_not_read_and_serves_others(serve, mode):
    model = await serve(COUNTING, decoupled=True, mode=mode)
    reply = model.ask(x(1), id="stream")
    answers = aiter(reply)
    await anext(answers)
    while not reply.request.paused:
        await asyncio.sleep(0.001)

    for _ in range(100):
        (sent,) = await collect(model.ask(x(1), id="count"))
        assert sent <= MOST_ANSWERS + 4 * EACH_ANSWERS

    await answers.aclose()
    (sent,) = await collect(model.ask(x(1), id="count"))
    assert sent < 100_000


@pytest.mark.parametrize("mode", ["process", "thread"])
async def test_a_client_that_reads_on_gets_all(serve, mode):
    model = await serve(COUNTING.replace("100_000", "5000"), decoupled=True, mode=mode)
    reply = model.ask(x(1), id="stream")
    answers = aiter(reply)
    await anext(answers)
    while not reply.request.paused:
        await asyncio.sleep(0.001)

    assert [int(item.output("y").array[0]) async for item in answers] == list(range(1, 5000))
