"""Short executions of requests that run one by one are sent ahead, and answered together."""

import asyncio

import numpy as np
import pytest
from backend_python.server.active import AHEAD, SHORT_NS, Took

from core import CoreError

PLUS_ONE = """
    def execute(self, requests):
        assert len(requests) == 1
        x = requests[0].inputs()[0].as_numpy()
        if x[0] == -2:
            time.sleep(0.001)  # long, whatever comes first
        while x[0] == -2 and not os.path.exists(os.path.join(pb_utils.get_model_dir(), "go")):
            time.sleep(0.001)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x + 1)])]
"""


def instance(model):
    (worker,) = model.chain._pool.runners
    return worker.instance


async def short(serve, source=PLUS_ONE):
    """Return a model after enough requests to know that its executions are short."""
    model = await serve(source)
    while instance(model).ahead == 1:
        assert await model.y(1) == [2]
    return model


async def test_many_at_once_have_their_own_answers_in_order(serve):
    model = await short(serve)
    assert instance(model).ahead == AHEAD
    before = model.statistics.execution_count
    order = []

    async def one(i):
        assert await model.y(i) == [i + 1]
        order.append(i)

    await asyncio.gather(*(one(i) for i in range(1000)))

    assert order == list(range(1000))
    assert model.statistics.execution_count == before + 1000


async def test_a_response_does_not_wait_for_a_later_long_execution(serve, folder):
    model = await short(serve)

    asked = [model.y(value) for value in (1, 2, 3, -2, 5)]
    tasks = [asyncio.ensure_future(each) for each in asked]
    assert [await task for task in tasks[:3]] == [[2], [3], [4]]
    assert not tasks[3].done()

    (folder / "1" / "go").touch()
    assert [await task for task in tasks[3:]] == [[-1], [6]]
    assert instance(model).ahead == 1  # until it is known to be short again


NOTES = """
    def initialize(self, args):
        if os.path.exists(os.path.join(pb_utils.get_model_dir(), "broken")):
            raise RuntimeError("still broken")
        self.notes = os.open(
            os.path.join(pb_utils.get_model_dir(), "notes"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def execute(self, requests):
        x = requests[0].inputs()[0].as_numpy()
        os.write(self.notes, b"%d\\n" % x[0])
        if x[0] < 0:
            ENDS
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x + 1)])]
"""
ENDS = {
    "it exits": "os._exit(1)",
    "it is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "it hangs up and goes on": "__import__('socket').socket(fileno=os.dup(CHANNEL)).shutdown(2)",
}


def notes(folder):
    return [int(line) for line in (folder / "1" / "notes").read_text().split()]


@pytest.mark.parametrize("deaths", [{5}, {5, 6, 50, 99}], ids=len)
@pytest.mark.parametrize("how", ENDS.values(), ids=ENDS)
async def test_a_death_fails_running_requests_and_the_next_child_runs_the_others(
    serve, folder, how, deaths
):
    how = how.replace(
        "CHANNEL",
        "__import__('backend_python.api.host').api.host._process._connection._sock.fileno()",
    )
    model = await short(serve, NOTES.replace("ENDS", how))
    (folder / "1" / "notes").write_text("")

    answers = await asyncio.gather(
        *(model.y(-i if i in deaths else i) for i in range(100)), return_exceptions=True
    )

    failed = {i for i, each in enumerate(answers) if isinstance(each, CoreError)}
    assert deaths <= failed
    assert all(answers[i] == [i + 1] for i in range(100) if i not in failed)
    executed = [abs(i) for i in notes(folder)]
    lost = set(range(100)) - set(
        executed
    )  # one that continues may be ended between its mark and its note
    assert executed == [i for i in range(100) if i not in lost]  # each once; what failed, too
    assert lost <= failed
    assert len(lost) <= (len(deaths) if "shutdown" in how else 0)
    # What failed besides had been executed, and its answer was under way; one that hangs up and goes on
    # executes until it is ended, too.
    before, behind = AHEAD, AHEAD if "shutdown" in how else 0
    for i in failed - deaths:
        assert any(death - before < i < death + behind for death in deaths)


async def test_without_a_next_child_the_waiting_requests_get_its_error(serve, folder):
    model = await short(serve, NOTES.replace("ENDS", ENDS["it is killed"]))
    (folder / "1" / "broken").touch()

    answers = await asyncio.gather(
        *(model.y(-1 if i == 0 else i) for i in range(AHEAD)), return_exceptions=True
    )

    assert answers[0].message == "Stub process 'm_0' is not healthy."
    assert all("still broken" in each.message for each in answers[1:])

    (folder / "1" / "broken").unlink()
    assert await model.y(1) == [2]


async def test_closing_fails_the_requests_of_a_dead_child(serve, folder, children):
    model = await short(serve, NOTES.replace("ENDS", ENDS["it is killed"]))

    asked = [asyncio.ensure_future(model.y(-1 if i == 0 else i)) for i in range(AHEAD)]
    with pytest.raises(CoreError, match="not healthy"):
        await asked[0]
    await model.chain.close()

    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert all(a == [i + 1] or "not healthy" in a.message for i, a in enumerate(answers) if i)
    while children():  # one may have been about to start
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "more",
    [
        "max_batch_size: 1 dynamic_batching { }",
        "sequence_batching { }",
    ],
)
async def test_where_requests_meet_nothing_is_sent_ahead(serve, more):
    model = await serve(PLUS_ONE, more)

    for i in range(40):
        x = np.full((1, 1) if "max" in more else 1, i, np.float32)
        await model.ask({"x": x}, correlation_id=1, flags=3)

    assert instance(model).ahead == 1


def test_executions_are_short_when_many_were_and_long_when_one_was():
    took = Took()

    for _ in range(16):
        assert not took.short
        took.add(SHORT_NS - 1)
    assert took.short

    took.add(SHORT_NS)
    assert not took.short
