"""The compiled reader of v2 requests reads like the reader in Python, or leaves the request to it."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.http.both_readers import MOST, agreed
from unit.http.drawn_requests import requests

from frontends.http.native import infer_request
from frontends.shared.memory import SharedMemoryRegions

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus" / "http_json"


@pytest.fixture
def region():
    """The name of a registered region of 64 bytes, and the regions that it is in."""
    path = Path(f"/dev/shm/core_unit_test_infer_request_{os.getpid()}")
    path.write_bytes(bytes(64))
    regions = SharedMemoryRegions(allowed=True)
    regions.register("r", f"/{path.name}", 0, 64)
    yield "r", regions
    path.unlink()


@given(requests())
@settings(max_examples=200)
def test_both_readers_read_the_same(request):
    agreed(*request)


@given(requests(), st.sampled_from([b"", b"x", b"1234"]), st.integers(0, 5))
def test_both_readers_want_the_tail_to_the_byte(request, more, less):
    head, tail = request
    agreed(head, tail + more)
    agreed(head, tail[: len(tail) - less])


@given(requests(), st.data())
@settings(max_examples=200)
def test_both_readers_agree_on_text_with_wrong_bytes(request, data):
    head, tail = bytearray(request[0]), request[1]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(head)))
        wrong = data.draw(
            st.binary(max_size=3) | st.sampled_from([b",", b"]", b"[", b'"', b"\\", b"{"])
        )
        head[at : at + data.draw(st.integers(0, 3))] = wrong
    agreed(bytes(head), tail)


@given(requests(), st.data())
def test_both_readers_agree_on_members_that_come_twice(request, data):
    text, tail = request
    member = data.draw(
        st.sampled_from(
            [b'"id":"twice"', b'"inputs":[]', b'"outputs":[]', b'"parameters":{"own":1,"own":2}']
        )
    )
    agreed(b"{" + member + b"," + text.lstrip()[1:], tail)


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_both_readers_agree_on_the_corpus_of_the_fuzzer(path):
    agreed(path.read_bytes(), bytes(8))
    agreed(path.read_bytes())


def test_shared_memory_is_found_by_both_readers(region):
    name, regions = region
    place = {"shared_memory_region": name, "shared_memory_offset": 8, "shared_memory_byte_size": 8}
    entry = {"name": "x", "datatype": "FP32", "shape": [2], "parameters": place}
    body = json.dumps({"inputs": [entry], "outputs": [{"name": "y", "parameters": place}]}).encode()

    assert agreed(body, regions=regions) is not None

    request, form = infer_request.read("m", -1, body, len(body), MOST, regions)
    assert request.shared and form.placed == {"y"}
    request.outputs[0].memory[:] = np.array([3, 4], "<f4").tobytes()
    assert request.inputs["x"].array.tolist() == [3, 4]


@pytest.mark.parametrize(
    "change",
    [{"shared_memory_region": "other"}, {"shared_memory_offset": 2**63}, {"binary_data": True}],
)
def test_errors_of_shared_memory_are_raised_by_python(region, change):
    name, regions = region
    place = {"shared_memory_region": name, "shared_memory_byte_size": 8} | change
    entry = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}
    body = json.dumps({"inputs": [entry], "outputs": [{"name": "y", "parameters": place}]}).encode()

    assert agreed(body, regions=regions) is None
