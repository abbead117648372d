"""Which request of a stream a response is for, of servers that answer otherwise than their index says."""

import pytest
from core_router.grpc.native.blocks import block_of
from core_router.grpc.statuses import OK, UNAVAILABLE
from core_router.servers.server import State
from routing.opened_streams import Opened, answers, asks, packed, router_of

from frontends.grpc.protocol import messages


@pytest.fixture
def two_models():
    """A stream to one server that may have any model."""
    return Opened(router_of(""))


def in_flight(found):
    return [each.in_flight for each in found.router.table.servers.values()]


def lose(found, at=0):
    reached = found.reached[at]
    reached.lost(reached._attempt, 0)


def end(found):
    """End the streams of all servers well."""
    for each in found.reached:
        each.answered(each._attempt, None, None, block_of([(b"grpc-status", b"0")]), True)


@pytest.mark.parametrize("id", ["", "7"])
def test_a_response_that_others_follow_leaves_the_next_request_waiting(id):
    found = Opened(router_of("m"))
    given = [answers(id, 1, is_last=False), answers(id, 2, is_last=True)]
    found.send(asks(id), asks(id), is_over=True)

    found.answer(*given)
    assert found.client.sent == given
    lose(found)

    assert found.client.status == UNAVAILABLE  # those to the second request are missing
    assert in_flight(found) == [0] and found.router.kept_bytes == 0


def test_a_second_response_without_an_id_is_none_to_a_request_of_another_model(two_models):
    found = two_models
    found.send(asks("", model="many"), asks("", model="one"), is_over=True)

    found.answer(answers("", 1, "many"), answers("", 2, "many"))
    assert [each.model for each in found.reached[0].waiting] == ["one"]
    found.answer(answers("", 3, "one"))

    assert found.client.sent == [
        answers("", 1, "many"),
        answers("", 2, "many"),
        answers("", 3, "one"),
    ]


def test_a_second_response_without_an_id_is_none_to_a_request_with_one(two_models):
    found = two_models
    found.send(asks(""), asks("b"))

    found.answer(answers(""), answers(""))
    lose(found)

    assert found.client.status == UNAVAILABLE and in_flight(found) == [0]


def test_a_model_without_a_response_holds_no_other_one_back(two_models):
    found = two_models
    found.send(asks("", model="none"), asks("", model="one"), is_over=True)

    found.answer(answers("", 1, "one"))

    assert found.client.sent == [answers("", 1, "one")]
    reached = found.reached[0]
    assert reached.has_decoupled and not reached.waiting
    end = block_of([(b"grpc-status", b"0")])
    reached.answered(reached._attempt, None, None, end, True)
    assert found.client.status == OK and in_flight(found) == [0]


def test_models_without_a_response_hold_no_other_one_back(two_models):
    found = two_models
    given = ["none", "never", "none", "one", "never"]
    found.send(*[asks("", model=each) for each in given], is_over=True)

    found.answer(answers("", 1, "one"))

    assert found.client.sent == [answers("", 1, "one")]
    (reached,) = found.reached
    assert set(reached.decoupled) == {"none", "never"} and not reached.waiting
    end(found)
    assert found.client.status == OK and in_flight(found) == [0]


def test_responses_behind_a_model_that_shows_to_be_decoupled_are_sent():
    found = Opened(router_of("m", "n"))
    found.send(asks("", model="m"), asks("", model="m"), asks("", model="n"))
    last = answers("", 1, "n")
    found.answer(last, at=1)
    assert not found.client.sent

    found.answer(answers("", 2, is_last=False))

    assert found.client.sent == [answers("", 2, is_last=False), last]
    found.send(asks("", model="m"))  # counts as one of a decoupled model
    assert not found.stream._turns and not found.reached[0].waiting


def test_ids_out_of_order_pass_as_they_come():
    found = Opened(router_of("m"))
    found.send(asks("a"), asks("b"))

    found.answer(answers("b"), answers("a"))

    assert found.client.sent == [answers("b"), answers("a")]


@pytest.mark.parametrize("id", ["", "a"])
def test_a_model_that_the_server_knows_by_another_name_is_answered_in_order(id):
    found = Opened(router_of("m"))
    found.send(asks(id), asks(id), is_over=True)

    found.answer(answers(id, 1, "alias"), answers(id, 2, "alias"))

    assert found.client.sent == [answers(id, 1, "alias"), answers(id, 2, "alias")]
    assert in_flight(found) == [0]


def test_a_failed_response_without_an_id_is_that_of_the_first_request():
    found = Opened(router_of("m"))
    found.send(asks("a"), asks("b"))
    failed = messages.ModelStreamInferResponse(error_message="bad shape")
    failed.infer_response.model_name = "m"

    found.answer(packed(failed))

    assert found.client.sent == [packed(failed)] and found.waiting() == ["b"]


def test_a_request_that_waits_when_a_reload_makes_its_model_decoupled_has_no_turn():
    found = Opened(router_of("m", "n"))
    found.send(asks(1), asks(2, model="n"))
    last = answers(2, model="n")
    found.answer(last, at=1)
    table = found.router.table
    table.servers["h:1"].models["m"].is_decoupled = True
    table.changed()

    found.send(asks(3))
    assert found.client.sent == [last]  # it waits for nothing any more
    found.send(asks(4, model="n"), is_over=True)
    found.answer(answers(1), answers(3))
    found.answer(answers(4, model="n"), at=1)

    assert found.client.sent[1:] == [answers(1), answers(3), answers(4, model="n")]
    end(found)
    assert found.client.status == OK and in_flight(found) == [0, 0]
    assert found.router.kept_bytes == 0


def test_a_request_moves_to_a_server_where_its_model_has_shown_to_be_decoupled():
    found = Opened(router_of("m", "m"))
    found.send(asks(1))
    first = found.reached[0].server
    first.set_state(State.NOT_READY)
    found.router.table.changed()
    found.send(asks(2), is_over=True)
    second = found.reached[1]
    assert second.server is not first and found.waiting(1) == ["2"]
    found.answer(answers(2, is_last=False), at=1)

    lose(found)

    assert found.reached == [second] and not second.waiting
    assert found.router.kept_bytes == 0
    assert second._early[-1] == asks(1)
    found.answer(answers(2, is_last=True), answers(1, is_last=True))
    end(found)
    assert found.client.status == OK and in_flight(found) == [0, 0]
