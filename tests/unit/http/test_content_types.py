"""Content types of tensors in JSON: the same elements as MLServer's codecs give."""

import base64
import json
from datetime import datetime, timezone

import numpy as np
import pytest
from google.protobuf import descriptor_pool

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError, Kind
from core.native import strings
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.http.codec import generate
from frontends.http.codec.render import render
from frontends.http.native.infer_request import read as read_compiled
from frontends.shared.memory import SharedMemoryRegions

BLOBS = [b"\x00\xff", b"", b"text", bytes(range(256))]
TIMES = [datetime(2026, 1, 31, 12), datetime(1969, 12, 31, 23, 59, 59, 999999, timezone.utc)]


@pytest.fixture(scope="module")
def codecs():
    """The codecs of MLServer. Its messages have the names of tritonclient's, so they get another pool.

    That pool has no others: OpenTelemetry's, which MLServer imports, may already be in the default one.
    """
    reason = "MLServer has no wheel for this Python"
    pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc.trace_exporter", reason=reason)
    found = pytest.MonkeyPatch()
    pool = descriptor_pool.DescriptorPool()
    found.setattr(descriptor_pool, "Default", lambda: pool)
    try:
        return pytest.importorskip("mlserver.codecs", reason=reason)
    finally:
        found.undo()


def model(batch=0, **inputs):
    specs = {name: InputSpec(name, dtype, dims) for name, (dtype, dims) in inputs.items()}
    return Signature("m", 1, specs, {}, batch, False)


def as_json(found):
    """The JSON that MLServer's client sends."""
    return json.loads(found.model_dump_json(exclude_none=True))


def elements(request, name="x"):
    return request.inputs[name].array.reshape(-1).tolist()


# base64 ----------------------------------------------------------------------------


def test_base64_of_mlserver_gives_the_bytes_that_mlserver_gives(parsed, codecs):
    entry = codecs.Base64Codec.encode_input("x", BLOBS, use_bytes=False)
    request, _ = parsed({"inputs": [as_json(entry)]})

    assert elements(request) == BLOBS == codecs.Base64Codec.decode_input(entry)
    assert request.inputs["x"].shape == (4, 1)


@pytest.mark.parametrize("text", ["no base64!", "YQ", "YQ==YQ==", "a b", "ä"])
def test_text_that_is_no_base64_stays_as_it_is(parsed, tensor, text):
    request, _ = parsed({"inputs": [tensor([text], datatype="BYTES", content_type="base64")]})

    assert elements(request) == [text.encode()]


def test_base64_of_numbers_is_the_bytes_of_the_tensor(parsed, tensor):
    numbers = np.arange(6, dtype=np.float32)
    text = base64.b64encode(numbers.tobytes()).decode()
    for data in ([text], text):
        entry = {**tensor([], [2, 3], content_type="base64"), "data": data}
        request, _ = parsed({"inputs": [entry]})
        assert elements(request) == numbers.tolist()
    half = tensor([base64.b64encode(b"\x00\x3c").decode()], [1], "FP16", content_type="base64")
    assert elements(parsed({"inputs": [half]})[0]) == [1.0]


@pytest.mark.parametrize("data", [["?"], ["YQ==", "YQ=="], [], [1], {"a": 1}, None, 5])
def test_what_is_no_base64_of_a_tensor_is_refused(refusal, tensor, data):
    entry = {**tensor([], [1], content_type="base64"), "data": data}

    assert "'x'" in refusal({"inputs": [entry]})


def test_many_elements_are_decoded_too(parsed, tensor):
    texts = [base64.b64encode(b"%d" % i).decode() for i in range(2000)]
    request, _ = parsed({"inputs": [tensor(texts, datatype="BYTES", content_type="base64")]})

    assert elements(request) == [b"%d" % i for i in range(2000)]


# datetime --------------------------------------------------------------------------


def test_times_of_mlserver_stay_the_texts_that_mlserver_reads(parsed, codecs):
    entry = codecs.DatetimeCodec.encode_input("x", TIMES, use_bytes=False)
    request, _ = parsed({"inputs": [as_json(entry)]})

    assert [datetime.fromisoformat(each.decode()) for each in elements(request)] == TIMES
    assert codecs.DatetimeCodec.decode_input(entry) == TIMES


def test_times_for_int64_are_nanoseconds(parsed, tensor):
    texts = [
        "1970-01-01T00:00:01Z",
        "1970-01-01T01:00:00+01:00",
        "2026-01-31",
        *(t.isoformat() for t in TIMES),
    ]
    request, _ = parsed({"inputs": [tensor(texts, datatype="INT64", content_type="datetime")]})

    assert elements(request)[:2] == [10**9, 0]
    found = request.inputs["x"].array.view("datetime64[ns]")
    assert found[2] == np.datetime64("2026-01-31")
    assert found[3] == np.datetime64("2026-01-31T12:00")
    assert found[4] == np.datetime64("1969-12-31T23:59:59.999999")


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "2026-01-31T25:00", "\x00", "ä" * 100]
)
@pytest.mark.parametrize("datatype", ["BYTES", "INT64"])
def test_what_is_no_time_is_refused(refusal, tensor, text, datatype):
    entry = tensor([text], datatype=datatype, content_type="datetime")

    assert "expected a time in ISO 8601" in refusal({"inputs": [entry]})


def test_a_time_beyond_int64_is_refused(refusal, tensor):
    entry = tensor(["9999-01-01"], datatype="INT64", content_type="datetime")

    assert "1677 to 2262" in refusal({"inputs": [entry]})


# others ----------------------------------------------------------------------------


def test_numbers_and_texts_of_mlserver_are_what_they_are(parsed, codecs):
    numbers = codecs.NumpyCodec.encode_input("n", np.array([[1.5, 2], [3, 4]]))
    texts = codecs.StringCodec.encode_input("s", ["a", "ä"], use_bytes=False)
    request, _ = parsed({"inputs": [as_json(numbers), as_json(texts)]})

    assert request.inputs["n"].array.tolist() == [[1.5, 2], [3, 4]]
    assert elements(request, "s") == [b"a", "ä".encode()]


@pytest.mark.parametrize("kind", ["np", "str", "pd", "unknown", "", None, 5, {"a": [1]}, "BASE64"])
def test_other_content_types_change_nothing(parsed, tensor, kind):
    request, _ = parsed({"inputs": [tensor(["YQ=="], datatype="BYTES", content_type=kind)]})

    assert elements(request) == [b"YQ=="]


def test_the_compiled_reader_leaves_content_types_to_python():
    text = b'{"name":"x","datatype":"FP32","shape":[1],"data":[1]%b}'
    regions = SharedMemoryRegions(allowed=False)

    def compiled(inside=b"", beside=b""):
        body = b'{"inputs":[%b]%b}' % (text % inside, beside)
        return read_compiled("m", -1, body, len(body), 2**20, regions)

    assert compiled() is not None
    assert compiled(b',"parameters":{"other":1}') is not None
    assert compiled(b',"parameters":{"content_type":"np"}') is None
    assert compiled(b"", b',"parameters":{"content_type":"pd"}') is None
    assert (
        compiled(b"", b',"outputs":[{"name":"y","parameters":{"content_type":"base64"}}]') is None
    )


# data frames -----------------------------------------------------------------------


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})


def sent(frame, codecs):
    return as_json(codecs.PandasCodec.encode_request(frame, use_bytes=False))


@pytest.mark.parametrize(("batch", "dims"), [(8, (2,)), (8, (-1,)), (0, (-1, 2)), (0, (-1, -1))])
def test_a_data_frame_is_the_only_input_of_a_model(parsed, codecs, frame, batch, dims):
    document = sent(frame, codecs)
    request, _ = parsed(document, signature=model(batch, x=(dtypes.FP32, dims)))

    assert list(request.inputs) == ["x"]
    assert request.inputs["x"].shape == (3, 2)
    assert request.inputs["x"].array.tolist() == frame.to_numpy().tolist()
    assert request.inputs["x"].array.dtype == np.float32
    assert request.parameters["content_type"] == "pd"


def test_columns_are_the_inputs_with_their_names(parsed, codecs, frame):
    frame["s"] = ["p", "q", "r"]
    frame["s"] = frame["s"].astype(
        object
    )  # MLServer does not know the texts of newer versions of pandas
    known = {"a": (dtypes.INT64, (1,)), "b": (dtypes.FP64, (1,)), "s": (dtypes.BYTES, (1,))}
    request, _ = parsed(sent(frame, codecs), signature=model(8, **known))

    assert {name: each.shape for name, each in request.inputs.items()} == dict.fromkeys(
        "abs", (3, 1)
    )
    assert elements(request, "s") == [b"p", b"q", b"r"]
    flat = {name: (dtype, (-1,)) for name, (dtype, _) in known.items()}
    request, _ = parsed(sent(frame, codecs), signature=model(0, **flat))
    assert request.inputs["a"].shape == (3,)


def columns(tensor, *each):
    return {"parameters": {"content_type": "pd"}, "inputs": [tensor(**one) for one in each]}


def test_a_data_frame_that_does_not_fit_is_refused(refusal, tensor):
    signature = model(8, x=(dtypes.FP32, (2,)))
    one, two = {"data": [1], "name": "a"}, {"data": [1, 2], "name": "b"}

    text = refusal(columns(tensor, one, two), signature=signature)
    assert "column 'b' of the data frame has 2 rows, column 'a' has 1" in text
    text = refusal(columns(tensor, one), signature=signature)
    assert "1 rows and 1 columns does not fit input 'x' of model 'm', which takes [-1, 2]" in text
    words = {"data": ["a"], "name": "b", "datatype": "BYTES"}
    text = refusal(columns(tensor, one, words), signature=signature)
    assert "column 'b' of the data frame is BYTES, input 'x' is FP32" in text
    ints = model(8, x=(dtypes.INT32, (1,)))
    assert "is FP32, input 'x' is INT32" in refusal(columns(tensor, one), signature=ints)
    halves = model(8, x=(dtypes.BF16, (1,)))  # arrays have its bit patterns as UINT16
    small = {"data": [1], "name": "a", "datatype": "UINT8"}
    assert "is UINT8, input 'x' is BF16" in refusal(columns(tensor, small), signature=halves)


def test_a_data_frame_of_no_columns_is_left_to_the_check_of_inputs(parsed):
    document = {"parameters": {"content_type": "pd"}, "inputs": []}

    assert parsed(document, signature=model(0, x=(dtypes.FP32, (-1, 2))))[0].inputs == {}


@pytest.mark.parametrize("size", [0, 4, 12])
def test_a_column_of_binary_data_that_is_not_whole_is_refused(refusal, size):
    entry = {
        **{"name": "a", "datatype": "FP32", "shape": [2]},
        "parameters": {"binary_data_size": size},
    }
    document = {"parameters": {"content_type": "pd"}, "inputs": [entry]}

    text = refusal(document, bytes(size), signature=model(8, x=(dtypes.FP32, (1,))))
    assert "column 'a' of the data frame has other data than its shape says" in text


def split(frame):
    return json.loads(frame.to_json(orient="split"))


def generated(frame, signature):
    return generate.read("m", -1, signature, json.dumps({"dataframe_split": frame}).encode(), 2**20)


def test_the_split_form_of_pandas_is_the_only_input(frame):
    request = generated(split(frame), model(8, x=(dtypes.FP32, (2,))))

    assert request.inputs["x"].array.tolist() == frame.to_numpy().tolist()


def test_the_split_form_of_pandas_is_the_inputs_with_its_names(frame):
    frame["s"] = ["p", "q", "r"]
    known = {"a": (dtypes.INT64, (1,)), "b": (dtypes.FP64, (1,)), "s": (dtypes.BYTES, (1,))}
    request = generated(split(frame), model(8, **known))

    assert {name: each.shape for name, each in request.inputs.items()} == dict.fromkeys(
        "abs", (3, 1)
    )
    assert elements(request, "b") == [0.5, 1.5, 2.5]


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (5, "must be an object"),
        ({}, "must be an object"),
        ({"columns": ["a"], "data": 5}, "must be an object"),
        ({"columns": [1], "data": []}, "must be an object"),
        ({"columns": ["a", "a"], "data": []}, "has a column twice"),
        ({"columns": ["a"], "data": [[1], [1, 2]]}, "row 1 of"),
        ({"columns": ["a"], "data": [5]}, "row 0 of"),
        ({"columns": ["a"], "data": [[1]]}, "1 rows and 1 columns does not fit input 'x'"),
        ({"columns": ["a", "b"], "data": [[1, "s"]]}, "non-number"),
        ({"columns": ["x", "b"], "data": [[1, 2], [3, 4]]}, "column 'b' of"),
        ({"columns": ["x"], "data": [[1]]}, "does not fit input 'x'"),
        ({"columns": [], "data": []}, None),
    ],
)
def test_another_split_form_is_refused(frame, text):
    signature = model(8, x=(dtypes.FP32, (2,)))
    if text is None:
        assert generated(frame, signature).inputs == {}
        return
    with pytest.raises(CoreError) as caught:
        generated(frame, signature)
    assert caught.value.kind is Kind.INVALID
    assert text in caught.value.message


# outputs ---------------------------------------------------------------------------


def rendered(document, *tensors, parsed):
    _, form = parsed(document)
    answer = render(InferenceResponse("m", 1, outputs=list(tensors)), form)
    return json.loads(answer.body)["outputs"]


@pytest.fixture
def asked(tensor):
    def ask(**parameters):
        output = {"name": "y", "parameters": parameters}
        return {"inputs": [tensor([1])], "outputs": [output, {"name": "z"}]}

    return ask


def of_bytes(name, values):
    packed = np.empty(len(values), object)
    packed[:] = values
    return Tensor(name, dtypes.BYTES, (len(values),), raw=strings.encode(packed))


def test_an_output_in_base64_is_what_mlserver_reads(parsed, asked, codecs):
    types = pytest.importorskip("mlserver.types")
    z = Tensor("z", dtypes.INT32, (1,), array=np.array([7], np.int32))
    document = asked(content_type="base64")
    y, other = rendered(document, of_bytes("y", BLOBS), z, parsed=parsed)

    assert y["parameters"] == {"content_type": "base64"}
    assert codecs.Base64Codec.decode_output(types.ResponseOutput(**y)) == BLOBS
    assert other == {"name": "z", "datatype": "INT32", "shape": [1], "data": [7]}


def test_numbers_in_base64_are_the_bytes_of_the_tensor(parsed, asked):
    numbers = np.array([[1.5, -2]], np.float16)
    y, _ = rendered(
        asked(content_type="base64"),
        Tensor("y", dtypes.FP16, (1, 2), array=numbers),
        of_bytes("z", [b"a"]),
        parsed=parsed,
    )

    assert (y["datatype"], y["shape"]) == ("FP16", [1, 2])
    assert base64.b64decode(y["data"][0]) == numbers.tobytes()


@pytest.mark.parametrize("kind", ["np", "str", "datetime", 5, None])
def test_other_content_types_of_outputs_change_nothing(parsed, asked, kind):
    y, _ = rendered(
        asked(content_type=kind), of_bytes("y", [b"a"]), of_bytes("z", [b"b"]), parsed=parsed
    )

    assert y == {"name": "y", "datatype": "BYTES", "shape": [1], "data": ["a"]}
