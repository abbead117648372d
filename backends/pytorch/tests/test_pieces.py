"""Large inputs are copied in pieces, in order, on one thread or several."""

import threading

import numpy as np
import pytest
from backend_pytorch import pieces
from backend_pytorch.pieces import Copier
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 7)


@pytest.fixture(params=[1, 3])
def copier(request):
    found = Copier(request.param)
    yield found
    found.close()


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=9), piece=st.integers(1, 30))
@pytest.mark.parametrize("threads", [1, 3])
def test_all_bytes_arrive_before_they_are_sent(threads, sizes, piece):
    random = np.random.default_rng(3)
    sources = [random.integers(0, 256, size, np.uint8) for size in sizes]
    expected = np.concatenate(sources)
    out, sent = np.zeros(expected.size, np.uint8), []

    def send(begin, end):
        assert np.array_equal(out[begin:end], expected[begin:end])
        sent.append((begin, end))

    copier = Copier(threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", piece)
        copier.copy(sources, out, send)
    copier.close()

    begins = range(0, expected.size, piece)
    assert sent == [(begin, min(begin + piece, expected.size)) for begin in begins]


def test_sources_are_any_contiguous_buffers(copier, small_pieces):
    sources = [b"abc", bytearray(b"defgh"), np.arange(6, dtype=np.float32).reshape(2, 3)]
    out = np.zeros(32, np.uint8)

    copier.copy(sources, out, lambda begin, end: None)

    assert out.tobytes() == b"abcdefgh" + sources[2].tobytes()


def test_pieces_are_sent_on_the_thread_that_copies(copier, small_pieces):
    threads = []

    copier.copy(
        [b"x" * 30], np.zeros(30, np.uint8), lambda *_: threads.append(threading.get_ident())
    )

    assert set(threads) == {threading.get_ident()}


def test_a_piece_is_sent_while_the_next_one_is_copied(monkeypatch, small_pieces):
    sent, copied = threading.Event(), threading.Event()
    first = threading.get_ident()

    def gather(parts, out, begin):
        if begin:  # the second piece is not copied before the first one is sent
            assert threading.get_ident() != first
            assert sent.wait(10)
            copied.set()

    monkeypatch.setattr(pieces, "gather", gather)
    copier = Copier(2)
    copier.copy([b"x" * 14], np.zeros(14, np.uint8), lambda *_: sent.set())
    copier.close()

    assert copied.is_set()


def test_an_error_of_sending_ends_the_copy(copier, small_pieces):
    def send(begin, end):
        raise ValueError("the device is gone")

    with pytest.raises(ValueError, match="the device is gone"):
        copier.copy([b"x" * 70], np.zeros(70, np.uint8), send)


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (4, 2), (16, 4)])
def test_as_many_threads_as_half_of_the_cores(monkeypatch, small_pieces, cores, threads):
    monkeypatch.setattr(pieces.platform, "cores", lambda: frozenset(range(cores)))
    found = set()
    gate = threading.Barrier(threads)

    def gather(parts, out, begin):
        found.add(threading.get_ident())
        gate.wait(10)

    monkeypatch.setattr(pieces, "gather", gather)
    copier = Copier()
    copier.copy([b"x" * 7 * 4], np.zeros(7 * 4, np.uint8), lambda *_: None)
    copier.close()

    assert len(found) == threads
