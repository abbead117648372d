"""Memory that one process lends another: its lifetime, its return, and refusals. The GPU is played."""

import gc
import os
import threading
from collections import deque

import played_gpu
import pytest
from backend_python import arena, layout, loans, system
from backend_python.api import cuda
from backend_python.api.errors import TritonModelException
from backend_python.loans import LOAN, Borrower, Lender, Place
from backend_python.protocol import LOANS, ProtocolError
from core_testing import leftovers


class Kept:
    """An object that keeps memory, and is released with it."""


@pytest.fixture
def own():
    """Return a Place in memory of this process, and that memory."""
    memory = played_gpu.Memory()
    return loans.known.place(memory.address + 64, 12, 0), memory


@pytest.fixture
def returned():
    return deque()


@pytest.fixture
def borrower(returned):
    return Borrower(returned, settles=False)


def told(place, number=1):
    return LOAN.pack(place.handle, place.device, number | LOANS, place.offset, place.size)


def test_the_lender_keeps_the_memory_until_it_is_returned(own):
    place, _ = own
    lender, kept = Lender(), Kept()
    number, _ = lender.lend(place, kept)
    referrers = len(gc.get_referrers(kept))

    lender.returned(number)

    assert len(lender) == 0 and len(gc.get_referrers(kept)) == referrers - 1


def test_memory_that_is_not_lent_cannot_be_returned(own):
    lender = Lender()
    number, _ = lender.lend(own[0], None)
    lender.returned(number)

    with pytest.raises(ProtocolError, match="loan 1 came back, but is not lent"):
        lender.returned(number)


def test_nothing_is_kept_for_a_side_that_has_ended(own):
    lender = Lender()
    number, _ = lender.lend(own[0], None)

    lender.close()
    lender.lend(own[0], None)

    assert len(lender) == 0 and loans.known.counts == (0, 0)
    lender.returned(number)  # it was under way


def test_loans_come_back_with_the_regions_of_an_arena(own):
    fd = system.create_memory("test", 1 << 16)
    sender = arena.Sender(fd)
    sender.lender = Lender()
    offset = sender.allocate(100)
    number, _ = sender.lender.lend(own[0], None)

    sender.free([number, offset])

    assert (sender.used, len(sender.lender)) == (0, 0)
    with pytest.raises(ProtocolError):
        sender.free([number])
    sender.close()
    os.close(fd)


def test_a_loan_is_returned_without_references(own, borrower, returned):
    loan = borrower.take(told(own[0]))
    assert len(borrower) == 1 and not returned

    del loan

    assert len(borrower) == 0 and list(returned) == [1 | LOANS]


def test_memory_of_this_process_is_not_opened_but_found(own, borrower):
    lender = Lender()
    place, memory = own
    number, loan = lender.lend(place, memory)

    assert borrower.take(loan).address() == memory.address + 64
    lender.returned(number)


def test_one_handle_is_open_once_and_closed_with_its_last_loan(borrower, log):
    theirs = _other_process()
    try:
        one, two = (borrower.take(told(theirs.place, number)) for number in (1, 2))
        assert one.address() == two.address() and log()["opened"] == 1
        del one
        assert log()["closed"] == 0
        del two
        assert log()["closed"] == 1
    finally:
        theirs.end()


def test_memory_of_another_process_is_passed_on_by_its_handle(borrower):
    theirs = _other_process()
    try:
        loan = borrower.take(told(theirs.place))
        again = loans.known.place(loan.address() + 4, 8, 0)
        assert again == theirs.place._replace(offset=theirs.place.offset + 4)
        del loan
    finally:
        theirs.end()


class _Other:
    """A process that has memory, until `end`."""

    def __init__(self, pid, fd, hold):
        self._pid, self._hold = pid, hold
        handle = f"{pid} {fd}".encode().ljust(cuda.HANDLE_BYTES, b"\0")
        self.place = Place(handle, played_gpu.UUIDS[0], 64, played_gpu.SIZE)

    def end(self):
        os.close(self._hold)
        os.waitpid(self._pid, 0)


def _other_process():
    fd = os.memfd_create("theirs")
    os.ftruncate(fd, played_gpu.SIZE)
    wait, hold = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(hold)
        os.read(wait, 1)
        os._exit(0)
    os.close(wait)
    found = _Other(pid, fd, hold)
    os.close(fd)
    return found


def test_a_loan_of_a_process_that_has_ended_is_of_no_use(own, borrower, returned):
    loan = borrower.take(told(own[0]))

    borrower.lost = "'m_0', whose process has ended"

    with pytest.raises(TritonModelException, match="in the memory of 'm_0', whose process"):
        loan.address()
    del loan
    assert not returned  # the lender has ended


def test_a_loan_on_a_gpu_that_this_process_does_not_see_is_refused(own, borrower):
    loan = borrower.take(told(own[0]._replace(device=bytes(16))))

    with pytest.raises(
        TritonModelException, match=r"with UUID 0000.* which this process does not see"
    ):
        loan.address()


def test_a_handle_of_nothing_is_refused(own, borrower):
    loan = borrower.take(told(own[0]._replace(handle=b"0 0".ljust(64, b"\0"))))

    with pytest.raises(TritonModelException, match="played GPU"):
        loan.address()


def test_an_allocation_smaller_than_announced_is_refused(borrower):
    theirs = _other_process()
    try:
        loan = borrower.take(told(theirs.place._replace(size=1 << 20)))
        with pytest.raises(TritonModelException, match="has 65536 bytes, and not 1048576"):
            loan.address()
        del loan
    finally:
        theirs.end()


@pytest.mark.parametrize("wrong", ["behind the end", "twice", "no number"])
def test_a_loan_that_makes_no_sense_is_refused(own, borrower, wrong):
    place, number = own[0], 1 | LOANS
    held = borrower.take(told(place)) if wrong == "twice" else None
    offset = 1 << 40 if wrong == "behind the end" else place.offset
    number = 1 if wrong == "no number" else number

    with pytest.raises(ProtocolError):
        borrower.take(LOAN.pack(place.handle, place.device, number, offset, place.size))
    del held


def test_the_lender_can_wait_until_all_loans_are_returned(own, borrower):
    loan = [borrower.take(told(own[0]))]
    assert not borrower.wait_returned(0)
    waiting = threading.Thread(target=borrower.wait_returned, args=(60,))

    waiting.start()
    loan.clear()

    assert leftovers.settles(lambda: not waiting.is_alive())


def test_a_layout_lists_lent_memory():
    entries = [["a", 11, [2], 8], ["b", 11, [3], 128, 1], ["c", 11, [3], 140, 2]]

    (places,) = layout.request_places([entries], 1024)

    assert [(p.start, p.size, p.lent) for p in places] == [(0, 8, 0), (64, 128, 1), (192, 140, 2)]
    assert layout.lends([places]) and not layout.lends([places[:1]])


@pytest.mark.parametrize(
    "entry",
    [["a", 11, [3], 12, 1], ["a", 13, [3], 128, 1], ["a", 11, [3], 128, 3], ["a", 11, [3], 128, 2]],
    ids=["its bytes", "text", "in no known way", "without its copy"],
)
def test_a_layout_with_memory_that_cannot_be_lent_is_refused(entry):
    with pytest.raises(ProtocolError):
        layout.request_places([[entry]], 1024)


def test_the_place_of_a_loan_in_a_region_holds_it():
    assert LOAN.size <= layout.LOAN_BYTES and layout.LOAN_BYTES % arena.ALIGNMENT == 0
