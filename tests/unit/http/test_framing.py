"""The ends of requests in data for aiohttp: each part has the bytes of one request."""

from hypothesis import given
from hypothesis import strategies as st

from frontends.http.native.framing import Framing

GET = b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}\r\n\r\n\r\n{"
H2C = (
    GET[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n"
)
H2C_BODY = POST.replace(b"Host: x", b"Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c")
KNOWN = [GET, POST, H2C, H2C_BODY]
HEAD = GET.replace(b"GET", b"HEAD")
CHUNKED = POST.split(b"Content")[0] + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"


def parts(pieces, idle=False):
    """Return the parts of data that arrives in these pieces."""
    framing, found = Framing(), []
    for data in pieces:
        at = 0
        while at < len(data):
            end = framing.next_part(data, at, idle)
            assert at < end <= len(data)
            found.append(data[at:end])
            at = end
    return found


def test_requests_of_a_known_size_are_parts():
    assert parts([b"".join(KNOWN)]) == KNOWN


@given(st.lists(st.sampled_from(KNOWN), min_size=1, max_size=5), st.data())
def test_requests_are_cut_apart_however_they_come(requests, data):
    whole = b"".join(requests)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=6)))
    pieces = [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    found = parts(pieces)

    assert b"".join(found) == whole
    ends, at = set(), 0
    for part in found:
        at += len(part)
        ends.add(at)
    at = 0
    for request in requests:
        at += len(request)
        assert at in ends


def test_requests_of_an_unknown_size_end_with_a_blank_line():
    found = parts([HEAD + CHUNKED + GET])

    assert found == [HEAD, CHUNKED[: CHUNKED.index(b"\r\n\r\n") + 4], b"2\r\n{}\r\n0\r\n\r\n", GET]


def test_the_engine_that_is_idle_gets_a_request_from_its_start_again():
    framing = Framing()
    assert framing.next_part(HEAD, 0, True) == len(HEAD)

    assert framing.next_part(POST + GET, 0, True) == len(POST)


def test_followers_of_an_upgrade_are_dropped_if_its_end_is_unknown():
    framing = Framing()
    for request, drops in (H2C_BODY, False), (HEAD, False), (H2C.replace(b"GET", b"PUT"), True):
        assert framing.next_part(request, 0, True) == len(request)
        assert framing.drops_followers() == drops


def test_many_blank_lines_are_not_as_many_parts():
    found = parts([HEAD + b"\r\n\r\n" * 10_000])

    assert len(found) == 64
