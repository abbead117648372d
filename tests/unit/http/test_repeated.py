"""Requests and answers that repeat those before them on a connection: as if each were the first."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import dtypes
from core.config import InputSpec, OutputSpec, Signature
from core.options import Options
from core.pipeline.admit import Admission
from core.pipeline.endpoint import InFlightRequests, ModelEndpoint
from core.pipeline.endpoint_table import EndpointTable
from core.response import InferenceResponse, Reply
from core.system.account import MemoryAccount
from core.tensor import Tensor
from frontends.http.native.fast_connection import FastConnection
from frontends.http.native.listener_context import ListenerContext
from frontends.shared.memory import SharedMemoryRegions

SIGNATURE = Signature(
    "m",
    1,
    {"x": InputSpec("x", dtypes.FP32, (-1, -1))},
    {"y": OutputSpec("y", dtypes.FP32, (-1, -1)), "z": OutputSpec("z", dtypes.BYTES, (-1,))},
    0,
    False,
)


class Connection:
    """A fast path whose model gives the responses of a test."""

    def __init__(self, signature=SIGNATURE):
        self.requests = []
        self.answers = []  # those to come; without one the input comes back
        self.written = []
        admission = Admission(signature)
        endpoints = EndpointTable(
            lambda name, version: ModelEndpoint(InFlightRequests(None), admission, self.infer)
        )
        server = SimpleNamespace(
            account=MemoryAccount(1 << 30, 0),
            models=SimpleNamespace(endpoints=endpoints),
            shared=lambda factory: SimpleNamespace(regions=SharedMemoryRegions(False)),
            tracing=SimpleNamespace(on=False),
            options=Options.defaults(http_max_input_size=1 << 20, http_max_body_size=1 << 31),
        )
        loop = SimpleNamespace(call_later=lambda seconds, call: None)
        port = ListenerContext(
            server, loop, fallback=None, opened=_nobody, lost=_nobody, keep_alive_s=10.0
        )
        self.lane = FastConnection(port)
        self.lane.connection_made(self)

    def get_extra_info(self, name):
        return None  # it is not encrypted

    def write(self, data):
        self.written.append(data)

    def writelines(self, buffers):
        self.written.append(b"".join(map(bytes, buffers)))

    def infer(self, request):
        self.requests.append(request)
        [given] = [Tensor.of("y", each.array) for each in request.inputs.values()]
        reply = Reply(request)
        reply.send(self.answers.pop(0) if self.answers else InferenceResponse("m", 1, [given]))
        return reply

    def ask(self, *arguments, **more):
        return self.give(request(*arguments, **more))

    def give(self, data):
        self.lane.data_received(data)
        return re.sub(rb"Date: [^\r]*", b"Date: then", self.written[-1])


def _nobody(*_):
    """Replace a callback that counts connections."""


def request(values, **more):
    values = np.asarray(values, np.float32)
    binary = {"binary_data_size": values.nbytes}
    entry = {"name": "x", "datatype": "FP32", "shape": values.shape, "parameters": binary}
    parameters = {"binary_data_output": True, **more.pop("parameters", {})}
    head = json.dumps({"parameters": parameters, "inputs": [entry], **more}).encode()
    return (
        b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n"
        b"Inference-Header-Content-Length: %d\r\n\r\n%s%s"
        % (len(head) + values.nbytes, len(head), head, values.tobytes())
    )


def text_request(data="[[1.5]]", shape="[1,1]", more="", space="", name="x"):
    """With the numbers in the JSON, as its text has them."""
    tensor = f'"name":"{name}","datatype":"FP32",{space}"shape":{shape},"data":{data}'
    body = f'{{{more}"inputs":[{{{tensor}}}]}}'.encode()
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


@pytest.fixture
def connection():
    return Connection()


@pytest.mark.parametrize("shape", [(2, 3), (30, 30), (64, 64)], ids=["tiny", "copied", "viewed"])
def test_each_request_has_its_own_values_and_gets_its_own_answer(connection, shape):
    for i in range(6):
        values = np.full(shape, i, np.float32)

        answer = connection.ask(values)

        assert answer.endswith(values.tobytes())
        assert answer == Connection().ask(values)
    for i, each in enumerate(connection.requests):
        np.testing.assert_array_equal(each.inputs["x"].array, np.full(shape, i, np.float32))
        assert not each.inputs["x"].array.flags.writeable


def test_names_of_repeated_requests_are_those_of_the_signature_so_that_lookups_compare_no_text():
    name = "".join(["val", "ues"])
    inputs = {name: InputSpec(name, dtypes.FP32, (-1, -1))}
    connection = Connection(Signature("m", 1, inputs, SIGNATURE.outputs, 0, False))

    for data in ("[[1]]", "[[2]]", "[[3]]"):
        connection.give(text_request(data, name="values"))

    assert next(iter(connection.requests[-1].inputs)) is name
    assert connection.requests[-1].inputs[name].name is name


def test_large_bodies_may_come_in_pieces(connection):
    for i in range(6):
        values = np.full((80, 80), i, np.float32)
        data = request(values)

        for begin in range(0, len(data), 7_000):
            connection.lane.data_received(data[begin : begin + 7_000])

        np.testing.assert_array_equal(connection.requests[i].inputs["x"].array, values)
        assert not connection.requests[i].inputs["x"].array.flags.writeable


def test_another_json_of_the_same_size_is_read_correctly(connection):
    for shape in ((2, 6), (6, 2), (3, 4), (4, 3), (4, 3), (2, 6)) * 2:
        answer = connection.ask(np.arange(12).reshape(shape))

        assert connection.requests[-1].inputs["x"].shape == shape
        assert answer == Connection().ask(np.arange(12).reshape(shape))


def test_other_members_are_read_in_each_request(connection):
    said = {"sequence_id": 7, "sequence_start": True, "priority": 3, "timeout": 9}
    for _ in range(4):
        connection.ask([[1]], id="one", parameters=said, outputs=[{"name": "y"}])

        found = connection.requests[-1]
        assert (found.id, found.correlation_id, found.flags) == ("one", 7, 1)
        assert (found.priority, found.timeout_us) == (3, 9)
        assert [output.name for output in found.outputs] == ["y"]


def test_custom_parameters_are_no_others_requests(connection):
    for _ in range(4):
        connection.ask([[1]], parameters={"mine": 1})

        assert connection.requests[-1].parameters == {"mine": 1}
        connection.requests[-1].parameters["mine"] = 2


def test_inputs_are_no_others_requests(connection):
    for _ in range(4):
        connection.ask([[1]])

        assert list(connection.requests[-1].inputs) == ["x"]
        connection.requests[-1].inputs.clear()


def test_numbers_in_the_json_are_read_and_written_each_time(connection):
    for i in range(6):
        values = [
            [i, 0.1 * i],
            [-1e9 * i, 7],
        ]  # their text is longer, or shorter, than the one before

        answer = connection.give(text_request(json.dumps(values), "[2,2]"))

        expected = np.array(values, np.float32)
        np.testing.assert_array_equal(connection.requests[i].inputs["x"].array, expected)
        got = json.loads(answer.partition(b"\r\n\r\n")[2])["outputs"]
        assert [each["name"] for each in got] == ["y"]
        np.testing.assert_array_equal(np.float32(got[0]["data"]), expected.ravel())


ELEMENTS = ["1", "-0.25", " 3e2", "7 ", "NaN", "1e999", "true", '"4"', "", "[5]", "0x1"]
LISTS = st.builds(
    lambda elements, gap: "[" + f",{gap}".join(elements) + "]",
    st.lists(st.sampled_from(ELEMENTS[:4]) | st.sampled_from(ELEMENTS), min_size=1, max_size=3),
    st.sampled_from(["", " ", "\n "]),
)
TEXTS = st.builds(
    text_request,
    LISTS | LISTS.map(lambda one: f"[{one}]"),
    st.sampled_from(
        ["[1,2]", "[2,1]", "[1,1]", "[1,0]", "[ 2 ,1]", "[01,1]", "[1]", "[1,-1]", "[3,1,1]"]
    ),
    st.sampled_from(
        [
            *["", "", "", '"id":"one",', '"id":"2",', '"id":"",', r'"id":"\"",', '"id":"ü",'],
            *['"id":3,', '"parameters":{"mine":1},'],
        ]
    ),
    st.sampled_from(["", "", " "]),
)


@given(st.lists(TEXTS, min_size=1, max_size=10), st.data())
def test_a_request_in_json_is_as_if_it_were_the_first(texts, data):
    connection = Connection()
    for _ in range(len(texts) * 3):
        text = data.draw(st.sampled_from(texts))
        alone = Connection()

        answer = connection.give(text)

        assert answer == alone.give(text)
        assert len(connection.requests) == len(alone.requests)
        for mine, theirs in zip(connection.requests, alone.requests, strict=True):
            assert mine.inputs["x"].raw == theirs.inputs["x"].raw
            assert mine.inputs["x"].shape == theirs.inputs["x"].shape
            assert (mine.id, mine.parameters) == (theirs.id, theirs.parameters)
        connection.requests.clear()


JSONS = st.builds(
    lambda id, shape, size: (
        f'{{{id}"parameters":{{"binary_data_output":true}},"inputs":[{{"name":"x","datatype":"FP32",'
        f'"shape":{shape},"parameters":{{"binary_data_size":{size}}}}}]}}'
    ).encode(),
    st.sampled_from(["", '"id":"one",', '"id":"another",', '"id": "3",', r'"id":"\u0041",']),
    st.sampled_from(["[1,2]", "[2,1]", "[2, 2]", "[1,1]", "[0,1]", "[02,1]", "[2]", "[2,1e0]"]),
    st.sampled_from(["8", "16", "4", "0", "08", "8.0", "-8", "99999999999999999999", '"8"']),
)
HEADS = st.sampled_from(
    [
        "Content-Length: {whole}\r\nInference-Header-Content-Length: {json}",
        "Inference-Header-Content-Length: {json}\r\nContent-Length: {whole}",
        "Content-Length: {whole}\r\nInference-Header-Content-Length: 0{json}",
        "Content-Length: 00{whole}\r\nInference-Header-Content-Length: {json}",
        "Content-Length: {whole}\r\nInference-Header-Content-Length: 0",
        "Content-Length: {whole}",
    ]
)


@st.composite
def binary_requests(draw):
    head, json_part = draw(HEADS), draw(JSONS)
    body = json_part + draw(st.binary(min_size=4, max_size=4)) * draw(st.sampled_from([2, 4, 1, 0]))
    fields = head.format(whole=len(body), json=len(json_part))
    return f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n".encode() + body


@given(st.lists(binary_requests(), min_size=1, max_size=8), st.data())
def test_a_binary_request_is_as_if_it_were_the_first(texts, data):
    connection = Connection()
    for _ in range(len(texts) * 3):
        text = data.draw(st.sampled_from(texts))
        alone = Connection()

        answer = connection.give(text)

        assert answer == alone.give(text)
        assert len(connection.requests) == len(alone.requests)
        for mine, theirs in zip(connection.requests, alone.requests, strict=True):
            assert (mine.id, mine.inputs["x"].shape) == (theirs.id, theirs.inputs["x"].shape)
            assert bytes(mine.inputs["x"].raw) == bytes(theirs.inputs["x"].raw)
        connection.requests.clear()


@pytest.mark.parametrize("at_once", [1, 5], ids=["alone", "together"])
def test_requests_with_different_ids_and_rows_are_read_and_answered_correctly(connection, at_once):
    asked = [np.full((1 + i % 8, 2), i, np.float32) for i in range(40)]
    for begin in range(0, len(asked), at_once):
        some = range(begin, begin + at_once)

        connection.lane.data_received(b"".join(request(asked[i], id=f"number {i}") for i in some))

    for i, each in enumerate(connection.requests):
        assert each.id == f"number {i}"
        np.testing.assert_array_equal(each.inputs["x"].array, asked[i])
    answers = b"".join(connection.written)
    alone = b"".join(Connection().ask(values, id=f"number {i}") for i, values in enumerate(asked))
    assert re.sub(rb"Date: [^\r]*", b"Date: then", answers) == alone


def test_a_head_with_another_size_may_come_in_pieces(connection):
    for i in range(60):
        values = np.full((1 + i % 8, 2), i, np.float32)
        data = request(values, id=f"{i}")

        connection.lane.data_received(data[: 3 * i])
        connection.lane.data_received(data[3 * i :])

        assert connection.requests[-1].id == f"{i}"
        np.testing.assert_array_equal(connection.requests[-1].inputs["x"].array, values)


def test_a_shape_cannot_claim_memory_that_was_not_sent(connection):
    for _ in range(3):
        connection.give(text_request("[[1.5]]", "[1,1]"))

    for shape in ("[100000,100000]", "[1,999999999999999999]", "[999999999,99999999999]"):
        answer = connection.give(text_request("[[1.5]]", shape))

        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer == Connection().give(text_request("[[1.5]]", shape))


def test_members_after_the_numbers_belong_to_the_request(connection):
    text = text_request("[[12345]]")
    for _ in range(3):
        connection.give(text)

    for torn in (text[:-1] + b" ", text[:-2] + b"} ", text[:-1] + b"]"):
        assert connection.give(torn).startswith(b"HTTP/1.1 400 ")
    # Of the same size: two digits fewer, and two braces more.
    head, _, body = text_request("[[123]]").partition(b"\r\n\r\n")
    size = len(body)
    longer = head.replace(b"%d" % size, b"%d" % (size + 2)) + b"\r\n\r\n" + body + b"}}"
    assert len(longer) == len(text)
    assert connection.give(longer).startswith(b"HTTP/1.1 400 ")


def test_lists_of_other_lengths_are_refused(connection):
    for _ in range(3):
        connection.give(text_request(json.dumps([1] * 3000), "[1,3000]"))

    for count in (0, 1, 2999, 3001):
        answer = connection.give(text_request(json.dumps([1] * count), "[1,3000]"))
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer == Connection().give(text_request(json.dumps([1] * count), "[1,3000]"))


def arrays(size):
    """Arrays of any order that have so many numbers."""
    values = st.lists(st.floats(-9, 9, width=32), min_size=size, max_size=size)
    shapes = st.sampled_from([(1, size), (size, 1), (2, size // 2), (size,), (1, 1, size)])
    made = st.builds(lambda v, s: np.array(v, np.float32).reshape(s), values, shapes)
    return made | made.map(lambda array: np.asfortranarray(array))


@st.composite
def responses(draw):
    outputs = [Tensor.of("y", draw(arrays(draw(st.sampled_from([4, 4, 2, 6])))))]
    if draw(st.booleans()):
        outputs = [Tensor("y", dtypes.FP32, t.shape, raw=bytes(t.raw)) for t in outputs]
    if draw(st.integers(0, 5)) == 0:
        outputs.append(Tensor.of("z", np.array([draw(st.binary(max_size=3))], object)))
    rare = draw(st.integers(0, 9))
    return InferenceResponse(
        "m" if rare else "n",
        2 if rare == 1 else 1,
        outputs[:0] if rare == 2 else outputs,
        id=draw(st.sampled_from(["an id", "2", 'a "quote"', "ü\n"])) if rare > 5 else "",
        parameters={"a": draw(st.integers(0, 3))} if rare == 4 else None,
    )


@given(st.lists(st.tuples(responses(), st.booleans()), min_size=1, max_size=12))
def test_an_answer_is_as_if_it_were_the_first(answers):
    connection = Connection()
    for response, binary in answers:
        form = {"parameters": {"binary_data_output": binary}}
        alone = Connection()
        alone.answers.append(response)
        connection.answers.append(response)

        assert connection.ask([[1]], **form) == alone.ask([[1]], **form)
