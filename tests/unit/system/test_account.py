"""The account of bytes that the connections of a server hold together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import MemoryExhausted
from core.options import Options
from core.system.account import MemoryAccount, available_bytes


def test_one_connection_may_hold_half_of_the_limit():
    share = MemoryAccount(1000, 0).share()

    assert share.try_take(500)
    assert not share.try_take(1)


def test_greedy_connections_leave_bytes_for_one_more():
    account = MemoryAccount(1200, 0)
    greedy = [account.share() for _ in range(3)]
    for _ in range(1200):
        for share in greedy:
            share.try_take(1)

    assert [share.held for share in greedy] == [300, 300, 300]
    assert account.share().try_take(100)


def test_released_bytes_can_be_taken_again():
    account = MemoryAccount(100, 0)
    first, second = account.share(), account.share()
    first.take(50, "a body")
    assert not second.try_take(26)

    first.give(50)

    assert second.try_take(50)


def test_a_closed_connection_holds_no_bytes():
    account = MemoryAccount(100, 100)
    share = account.share()
    share.take(20, "a body")
    share.take_unpaid(30, "a body")

    share.close()
    share.close()

    assert (account.held, account.unpaid, share.held, share.unpaid) == (0, 0, 0, 0)


def test_a_refusal_names_the_holders_and_the_flag_to_raise():
    account = MemoryAccount(100, 0)
    share = account.share()
    share.take(40, "a body")

    with pytest.raises(MemoryExhausted) as caught:
        share.take(60, "the body of the request")

    assert caught.value.message == (
        "no memory for the body of the request of 60 bytes: this connection holds 40 bytes and all "
        "connections hold 40 of 100; retry later or increase --request-memory-byte-size"
    )
    assert account.refusals == 1


def test_unpaid_bytes_have_a_limit_of_their_own():
    account = MemoryAccount(1 << 30, 100)
    share = account.share()
    share.take_unpaid(50, "the body")

    with pytest.raises(
        MemoryExhausted, match=r"50 such bytes .* 50 of 100.*unpaid-memory-byte-size"
    ):
        share.take_unpaid(1, "the body")

    assert (account.held, account.unpaid, account.refusals) == (0, 50, 1)


def test_workers_split_the_limits():
    options = Options(request_memory_byte_size=900, unpaid_memory_byte_size=90, workers=3)

    account = MemoryAccount.of(options)

    assert (account.limit, account.unpaid_limit) == (300, 30)


def test_by_default_the_limit_is_half_of_the_memory():
    assert MemoryAccount.of(Options()).limit == available_bytes() // 2


def test_the_limit_of_a_container_counts(tmp_path):
    (tmp_path / "memory.max").write_text("1048576\n")

    assert available_bytes(tmp_path) == 1048576


def test_a_container_without_a_limit_has_the_memory_of_the_machine(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")

    assert available_bytes(tmp_path) == available_bytes(tmp_path / "missing") > 1 << 20


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-400, 400)), max_size=60))
def test_the_account_is_the_sum_of_its_shares_and_never_above_its_limit(steps):
    account = MemoryAccount(1000, 0)
    shares = [account.share() for _ in range(5)]

    for number, size in steps:
        share = shares[number]
        if size >= 0:
            share.try_take(size)
        else:
            share.give(min(-size, share.held))

        assert account.held == sum(each.held for each in shares) <= account.limit
