"""What an InferStream keeps, and in which order it sends. No connection to its servers is open yet."""

import asyncio

import pytest
from core_router.grpc.server_stream import REQUEST_BYTES
from core_router.grpc.statuses import INTERNAL, RESOURCE_EXHAUSTED, UNAVAILABLE
from routing.grpc_servers import request
from routing.opened_streams import Opened, answers, asks, packed, router_of

from frontends.grpc.protocol import messages


class Task:
    """A task of the router that runs when a test says so."""

    def __init__(self, work):
        self.work = work

    def cancel(self):
        pass


def keep_tasks(router):
    found = []

    def run(work):
        found.append(Task(work))
        return found[-1]

    router.run = run
    return found


@pytest.fixture
def open_stream():
    return lambda *models, **limits: Opened(router_of(*models, **limits))


# what is kept ---------------------------------------------------------------


def test_the_client_waits_while_4_MiB_wait_also_within_a_message(open_stream):
    found = open_stream()
    next_one = asks(5, 1000)
    found.send(*[asks(each, 1_000_000) for each in range(5)], next_one[:500])

    found.stream.may_read()
    assert found.client.reads == 0
    found.answer(answers(0))
    assert found.client.reads == 1
    found.send(next_one[500:])
    found.answer(*[answers(each) for each in range(1, 6)])
    assert found.client.reads > 1 and found.router.kept_bytes == 0


def test_a_message_larger_than_what_may_wait_is_read_alone(open_stream):
    found = open_stream()
    large = asks(1, 5_000_000)
    found.send(large[:4_500_000])

    assert found.client.reads == 1
    found.send(large[4_500_000:])
    assert found.waiting() == ["1"] and found.router.kept_bytes == REQUEST_BYTES


def test_the_client_waits_while_many_small_requests_wait(open_stream):
    """A request takes more memory than its bytes."""
    found = open_stream()
    found.send(*[asks(each) for each in range(12_000)])
    found.stream.may_read()
    assert found.client.reads == 0

    found.answer(*[answers(each) for each in range(2000)])

    assert found.client.reads > 0


def test_each_request_that_waits_counts_more_than_its_bytes(open_stream):
    found = open_stream(kept_bytes=60_000)
    found.send(*[asks(each) for each in range(100)])
    assert found.router.kept_bytes > 100 * 300
    found.answer(*[answers(each) for each in range(100)])
    assert found.router.kept_bytes == 0

    found.send(*[asks(each) for each in range(200)])

    assert found.client.status == RESOURCE_EXHAUSTED and found.router.kept_bytes == 0


def test_the_client_goes_on_when_requests_wait_for_no_turn_any_more(open_stream):
    found = open_stream("n", "m")
    found.send(asks(0, model="n"), *[asks(each, 1_000_000) for each in range(1, 6)])
    found.stream.may_read()
    assert found.client.reads == 0

    found.answer(answers(1, is_last=False), at=1)

    assert found.client.reads == 1 and found.waiting() == ["0"]


def test_a_stream_ends_that_brings_the_router_above_its_bound():
    router = router_of(kept_bytes=1000)
    one, other = Opened(router), Opened(router)
    one.send(asks(1, 2000)[:600])

    other.send(asks(1, 2000)[:600])

    assert (one.client.status, other.client.status) == (None, RESOURCE_EXHAUSTED)
    assert router.kept_bytes == 600


def test_responses_that_wait_for_their_turn_count_too(open_stream):
    found = open_stream("m", "n", kept_bytes=10_000)
    found.send(asks(1), asks(2, model="n"))

    found.answer(answers(2, 5000, model="n"), at=1)
    assert found.client.status is None and not found.client.sent

    found.send(asks(3, model="n"))
    found.answer(answers(3, 5000, model="n"), at=1)
    assert found.client.status == RESOURCE_EXHAUSTED and found.router.kept_bytes == 0


def test_a_stream_remembers_a_bounded_number_of_models(open_stream):
    same, many, long = (open_stream() for _ in range(3))
    same.send(*[asks(each) for each in range(3000)])
    many.send(*[asks(each, model=f"m{each}") for each in range(3000)])
    long.send(asks(1, model="m" * 200_000))

    found = [each.client.status for each in (same, many, long)]
    assert found == [None, RESOURCE_EXHAUSTED, RESOURCE_EXHAUSTED]
    assert [each.in_flight for each in many.router.table.servers.values()] == [0]


# order ----------------------------------------------------------------------


def test_requests_keep_their_order_while_the_servers_are_looked_at_again(open_stream):
    found = open_stream("other")
    server = found.router.table.servers["h:1"]
    looks = []

    async def look_again():
        looks.append(None)
        if len(looks) == 2:  # the model has come meanwhile
            server.has_index = False
            found.router.table.changed()

    tasks = keep_tasks(found.router)
    found.router.look_again = look_again
    found.send(asks(1), asks(2), asks(3))
    while tasks:
        asyncio.run(tasks.pop(0).work)

    assert len(looks) == 2 and found.waiting() == ["1", "2", "3"]


def test_a_stream_ends_if_the_look_at_the_servers_fails(open_stream):
    found = open_stream("other")

    async def look_again():
        raise ValueError

    tasks = keep_tasks(found.router)
    found.router.look_again = look_again
    found.send(asks(1))
    with pytest.raises(ValueError):
        asyncio.run(tasks.pop().work)

    assert found.client.status == INTERNAL


# ends -----------------------------------------------------------------------


def test_what_follows_the_end_of_a_stream_in_the_same_bytes_is_not_processed(open_stream):
    found = open_stream("m", "n", kept_bytes=10_000)
    found.send(asks(1), asks(2, model="n"), asks(3, model="n"))

    found.answer(answers(2, 10_000, model="n"), answers(3, model="n"), at=1)

    assert found.client.status == RESOURCE_EXHAUSTED and not found.client.sent
    assert [each.in_flight for each in found.router.table.servers.values()] == [0, 0]


def test_a_server_without_a_connection_leaves_its_requests_to_another(open_stream):
    found = open_stream("", "")
    failed = []

    def connect(pool):
        if not failed:
            failed.append(pool.server)
            pool.not_opened("no")

    found.router.grpc.connect = connect
    found.send(asks(1), asks(2))

    (reached,) = found.reached
    assert failed and reached.server is not failed[0]
    assert found.waiting() == ["1", "2"]
    assert [each.in_flight for each in (failed[0], reached.server)] == [0, 2]


def test_a_sequence_does_not_move_with_a_stream_that_is_lost():
    """Whether or not a configuration says that the model has sequences."""

    def lose(*requests):
        found = Opened(router_of("m", "m"))
        found.send(*requests)
        (reached,) = found.reached
        reached.lost(reached._attempt, 0)
        return found

    begun = packed(request("m", id=1, sequence_id=7, sequence_start=True))
    middle = packed(request("m", id=2, sequence_id=7))

    assert lose(asks(1)).client.status is None
    assert lose(begun).client.status is None
    assert lose(begun, middle).client.status == UNAVAILABLE
    assert lose(middle).client.status == UNAVAILABLE


def refused():
    made = messages.ModelStreamInferResponse(error_message="no")
    made.infer_response.model_name = "m"
    return packed(made)


def test_a_start_that_fails_begins_no_sequence(open_stream):
    start = packed(request("m", id=1, sequence_id=7, sequence_start=True))
    next_one = packed(request("m", id=2, sequence_id=7))
    good, failed, lost = (open_stream("m") for _ in range(3))
    good.send(start)
    good.answer(answers(1))
    failed.send(start)
    failed.answer(refused())
    lost.send(start, next_one)
    (reached,) = lost.reached
    reached.lost(reached._attempt, 0)

    assert [len(each.router.sequences) for each in (good, failed, lost)] == [1, 0, 0]
    good.send(next_one)
    good.answer(refused())
    assert len(good.router.sequences) == 1


def test_starts_that_no_other_server_gets_begin_no_sequence(open_stream):
    found = open_stream("", "")
    found.send(*[packed(request("m", id=k, sequence_id=k, sequence_start=True)) for k in (1, 2)])
    assert len(found.router.sequences) == 2
    found.router.grpc.connect = lambda pool: pool.not_opened("no")

    for reached in found.reached:
        if not reached.is_ended:
            reached.lost(reached._attempt, 0)

    assert found.client.status == UNAVAILABLE and len(found.router.sequences) == 0


def test_an_end_forgets_the_starts_that_wait_at_all_servers(open_stream):
    def begun():
        found = open_stream("a", "b")
        starts = [request(each, id=each, sequence_id=7, sequence_start=True) for each in "ab"]
        found.send(*map(packed, starts))
        assert len(found.reached) == 2 and len(found.router.sequences) == 2
        return found

    lost, failed = begun(), begun()
    lost.reached[0].lost(lost.reached[0]._attempt, 0)
    failed.stream.fail(UNAVAILABLE, "")

    for found in (lost, failed):
        assert found.client.status == UNAVAILABLE and len(found.router.sequences) == 0


def test_a_router_that_ends_answers_what_has_come(open_stream):
    found = open_stream()
    found.stream.received(None, b"".join(asks(each) for each in range(250)), None, False)
    found.answer(*[answers(each) for each in range(100)])

    found.stream.end_when_idle()
    assert found.client.status is None
    found.loop.run()
    found.answer(*[answers(each) for each in range(100, 250)])

    assert len(found.client.sent) == 250 and found.client.status == UNAVAILABLE


def test_a_router_that_ends_answers_what_waits_for_a_look_at_the_servers(open_stream):
    found = open_stream("other")

    async def look_again():
        found.router.table.servers["h:1"].has_index = False
        found.router.table.changed()

    tasks = keep_tasks(found.router)
    found.router.look_again = look_again
    found.send(asks(1))
    found.stream.end_when_idle()
    asyncio.run(tasks.pop().work)
    assert found.client.status is None
    found.answer(answers(1))

    assert len(found.client.sent) == 1 and found.client.status == UNAVAILABLE


def test_a_router_that_ends_does_not_wait_for_the_rest_of_a_message(open_stream):
    found = open_stream()
    found.router.grpc.turns._left = 0
    found.router.grpc.turns._is_scheduled = True
    found.stream.received(None, asks(1, 1000)[:500], None, False)
    found.stream.end_when_idle()
    assert found.client.status is None

    found.router.grpc.turns._begin()

    assert found.client.status == UNAVAILABLE


def test_a_stream_without_servers_ends_once(open_stream):
    found = open_stream("", "", retries=3)
    found.router.grpc.connect = lambda pool: pool.not_opened("no")

    found.send(asks(1), asks(2))

    assert found.client.status == UNAVAILABLE and not found.reached
    assert [each.in_flight for each in found.router.table.servers.values()] == [0, 0]
