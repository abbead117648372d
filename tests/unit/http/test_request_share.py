"""The memory of one HTTP request in the account of its connection."""

import pytest

from core.errors import MemoryExhausted
from core.system.account import UNCOUNTED, MemoryAccount
from frontends.http.message import HttpRequest
from frontends.http.request_share import RequestShare


def test_a_closed_request_releases_exactly_its_bytes():
    account = MemoryAccount(1000, 1000)
    connection = account.share()
    first, second = RequestShare(connection), RequestShare(connection)
    first.take(100, "a body")
    first.take_unpaid(50, "a body")
    second.take(10, "a body")

    first.close()
    first.close()

    assert (account.held, account.unpaid) == (10, 0)
    assert (first.held, first.unpaid, second.held) == (0, 0, 10)


def test_bytes_released_early_are_not_released_again():
    account = MemoryAccount(1000, 1000)
    share = RequestShare(account.share())
    share.take(100, "a body")
    share.take_unpaid(30, "a body")
    share.give(40)

    assert (account.held, account.unpaid) == (60, 30)
    share.close()
    assert (account.held, account.unpaid) == (0, 0)


def test_a_refused_request_holds_no_more_bytes():
    account = MemoryAccount(100, 100)
    share = RequestShare(account.share())

    with pytest.raises(MemoryExhausted, match="no memory for a body of 60 bytes"):
        share.take(60, "a body")
    with pytest.raises(MemoryExhausted, match="no memory for a body"):
        share.take_unpaid(60, "a body")

    assert (share.held, share.unpaid) == (0, 0)


def test_small_requests_are_not_counted():
    account = MemoryAccount(10 * UNCOUNTED, 0)
    share = RequestShare(account.share())

    share.take_large(UNCOUNTED, "a body")
    assert account.held == 0
    share.take_large(UNCOUNTED + 1, "a body")
    assert account.held == UNCOUNTED + 1


def test_a_request_without_a_connection_has_no_limit():
    share = HttpRequest("POST", "/", {}, {}).share

    share.take(1 << 40, "a body")
    share.take_unpaid(1 << 40, "a body")
