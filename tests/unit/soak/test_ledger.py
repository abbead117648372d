"""The soak finds responses that are lost, wrong, given twice or refused without a reason."""

import pytest
from soak.http_client import parsed
from soak.ledger import Ledger, Refusal, Truth, Windows
from soak.plan import PLAN, plan

FULL = Refusal("full", r"Exceeds maximum queue size")
GONE = Refusal("gone", r"unknown model.*", "unload")


@pytest.fixture
def windows():
    return Windows()


@pytest.fixture
def ledger(windows):
    return Ledger(windows)


def test_a_request_without_an_answer_is_lost(ledger):
    ledger.begin("a")
    answered = ledger.begin("a")
    ledger.right(answered)

    assert len(ledger.lost()) == 1


def test_a_second_answer_is_noticed(ledger):
    number = ledger.begin("a")
    ledger.right(number)
    ledger.right(number)

    assert len(ledger.twice) == 1


def test_a_refusal_that_is_documented_is_counted(ledger):
    number = ledger.begin("a")
    ledger.refuse(number, "Exceeds maximum queue size", (FULL,))

    assert ledger.lines["a"].refused == {"full": 1}
    assert ledger.wrong == []


def test_a_refusal_of_another_kind_is_wrong(ledger):
    number = ledger.begin("a")
    ledger.refuse(number, "Exceeds maximum queue size", ())

    assert len(ledger.wrong) == 1


def test_a_refusal_is_excused_only_while_its_reason_lasts(ledger, windows):
    early = ledger.begin("a")
    ledger.refuse(early, "unknown model: 'm'", (GONE,))
    with windows.open("unload"):
        during = ledger.begin("a")
        ledger.refuse(during, "unknown model: 'm'", (GONE,))
    late = ledger.begin("a")
    ledger.refuse(late, "unknown model: 'm'", (GONE,))

    assert ledger.lines["a"].refused == {"gone": 1}
    assert len(ledger.wrong) == 2


def test_who_must_be_answered_has_no_excuse_in_the_end_of_the_server(ledger, windows):
    windows.begin("exit")
    number = ledger.begin("a")
    ledger.refuse(number, "closed: at the end", (), ending=False)

    assert len(ledger.wrong) == 1


def test_while_a_value_changes_both_are_right_and_then_the_new_one():
    truth = Truth(1)
    with truth.change(2):
        pass
    now = truth._spans[2][0][0]

    assert truth.holds(1, now - 1, now + 1) and truth.holds(2, now - 1, now + 1)
    assert not truth.holds(1, now + 10, now + 11)
    assert truth.holds(2, now + 10, now + 11)
    assert not truth.holds(2, now - 11, now - 10)


def test_a_plan_is_the_same_for_the_same_seed_and_lets_everything_happen():
    steps = plan(seed=7, seconds=600)

    assert steps == plan(seed=7, seconds=600) != plan(seed=8, seconds=600)
    assert {step.name for step in steps} == {name for name, _ in PLAN}
    assert [step.at_s for step in steps] == sorted(step.at_s for step in steps)


def test_a_response_ends_at_its_content_length():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"

    assert parsed(bytearray(answer[:-1])) is None
    assert parsed(bytearray(answer + b"HTTP/1.1 200")) == (200, b"abc", len(answer))


def test_an_answer_in_chunks_ends_with_the_empty_one():
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"

    assert parsed(bytearray(answer[:-1])) is None
    assert parsed(bytearray(answer)) == (200, b"abc", len(answer))
