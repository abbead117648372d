"""multipart/form-data: parts become inputs and parameters; hostile bodies are refused."""

import random

import numpy as np
import pytest

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError, Kind
from core.request import SEQUENCE_START
from frontends.http.codec import form

BOUNDARY = "----WebKitFormBoundaryAbC123"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
MOST = 2**20


def part(name, data, file=None, kind=None, *lines):
    found = f'Content-Disposition: form-data; name="{name}"'
    if file is not None:
        found += f'; filename="{file}"'
    lines = [found, *([f"Content-Type: {kind}"] if kind else []), *lines]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def body(*parts, end=b"--\r\n"):
    line = b"--" + BOUNDARY.encode()
    return line + b"".join(b"\r\n" + each + b"\r\n" + line for each in parts) + end


def model(batch=0, **inputs):
    specs = {name: InputSpec(name, dtype, dims) for name, (dtype, dims) in inputs.items()}
    return Signature("m", 1, specs, {}, batch, False)


def read(signature, *parts, headers=None, most=MOST, data=None):
    found = body(*parts) if data is None else data
    return form.read("m", -1, signature, headers or {"Content-Type": TYPE}, found, most)


def refused(signature, *parts, **more):
    with pytest.raises(CoreError) as caught:
        read(signature, *parts, **more)
    assert caught.value.kind is Kind.INVALID
    return caught.value.message


WORDS = model(x=(dtypes.BYTES, (-1,)))
PIXELS = model(x=(dtypes.UINT8, (-1,)))
NUMBERS = model(x=(dtypes.FP32, (2,)))


def elements(request, name="x"):
    return request.inputs[name].array.reshape(-1).tolist()


def test_a_file_is_one_element_of_bytes_unchanged():
    data = bytes(range(256)) * 3 + b"\r\n--not the boundary\r\n"
    found = read(WORDS, part("x", data, "a.bin", "image/png"))

    assert elements(found) == [data]
    assert found.inputs["x"].shape == (1,)


def test_several_files_are_several_elements_and_rows_of_a_batch():
    parts = [part("x", each, "f") for each in (b"a", b"", b"ccc")]

    assert elements(read(WORDS, *parts)) == [b"a", b"", b"ccc"]
    batched = read(model(8, x=(dtypes.BYTES, (1,))), *parts)
    assert batched.inputs["x"].shape == (3, 1)


def test_a_field_is_a_text_for_bytes():
    found = read(WORDS, part("x", "[1] ä".encode()))

    assert elements(found) == ["[1] ä".encode()]


def test_a_json_part_is_a_list_of_texts():
    assert elements(read(WORDS, part("x", b'["a", "b"]', None, "application/json"))) == [b"a", b"b"]


def test_a_file_of_json_is_one_element_of_bytes_unchanged():
    found = read(WORDS, part("x", b'["a", "b"]', "words.json", "application/json"))
    assert elements(found) == [b'["a", "b"]']


def test_a_file_is_the_elements_of_uint8():
    found = read(PIXELS, part("x", b"\x00\x01\xff", "p"))

    assert found.inputs["x"].array.tolist() == [0, 1, 255]


def test_files_of_one_size_are_rows_of_uint8():
    signature = model(4, x=(dtypes.UINT8, (2, -1)))
    found = read(signature, part("x", b"abcd", "p"), part("x", b"efgh", "p"))

    assert found.inputs["x"].shape == (2, 2, 2)
    assert found.inputs["x"].array.tobytes() == b"abcdefgh"
    assert "several sizes" in refused(signature, part("x", b"abcd", "p"), part("x", b"ef", "p"))
    assert "3 bytes" in refused(signature, part("x", b"abc", "p"))


def test_a_file_and_another_part_are_not_one_input_of_uint8():
    signature = model(4, x=(dtypes.UINT8, (-1,)))
    text = refused(signature, part("x", b"ab", "p"), part("x", b"12"))
    assert "files and other parts" in text


@pytest.mark.parametrize("text", ["01234", "-007", "1.", "+1", "0x1"])
def test_what_is_no_number_of_json_is_a_text_parameter(text):
    assert read(NUMBERS, part("zip", text.encode())).parameters["zip"] == text


def test_a_field_is_a_json_value_for_numbers():
    found = read(
        model(0, x=(dtypes.FP32, (2,)), y=(dtypes.INT64, (1,)), z=(dtypes.BOOL, (1,))),
        part("x", b" [1.5, 2] "),
        part("y", b"7"),
        part("z", b"true"),
    )

    assert elements(found) == [1.5, 2.0]
    assert elements(found, "y") == [7]
    assert elements(found, "z") == [True]


@pytest.mark.parametrize(
    "data", [b"", b"1,2", b"[1,2", b"[1],2", b'[1,2],"y":3', b'1}{"x":1', b"abc"]
)
def test_a_field_that_is_no_json_value_is_refused(data):
    assert "input 'x' of FP32 got" in refused(NUMBERS, part("x", data))


@pytest.mark.parametrize("data", [b"[1]", b"[1,2,3]", b'["a","b"]', b"[1e60,1]", b'{"a":1}'])
def test_values_that_do_not_fit_the_input_are_refused(data):
    assert "'x'" in refused(NUMBERS, part("x", data))


def test_a_file_for_numbers_is_refused():
    assert "BYTES or UINT8" in refused(NUMBERS, part("x", b"12345678", "f"))


def test_other_parts_are_parameters_with_their_meaning():
    found = read(
        WORDS,
        part("x", b"a"),
        part("id", b"17"),
        part("sequence_id", b"5"),
        part("sequence_start", b"true"),
        part("note", "grün".encode()),
        part("rate", b"0.5"),
    )

    assert found.id == "17"
    assert (found.correlation_id, found.flags) == (5, SEQUENCE_START)
    assert found.parameters == {"note": "grün", "rate": 0.5}


def test_a_file_that_is_no_input_is_refused_with_the_inputs():
    assert "whose inputs are 'x'" in refused(WORDS, part("y", b"a", "f"))


def test_a_parameter_given_twice_and_one_that_is_no_text_are_refused():
    assert "2 parts 'p'" in refused(WORDS, part("p", b"1"), part("p", b"2"))
    assert "UTF-8" in refused(WORDS, part("p", b"\xff"))
    assert "reserved" in refused(WORDS, part("triton_x", b"1"))


def test_a_file_that_was_not_chosen_is_no_part():
    found = read(WORDS, part("x", b"", "", "application/octet-stream"))

    assert found.inputs == {}


@pytest.mark.parametrize(
    ("written", "name"),
    [("a%22b", 'a"b'), ('a\\"b', 'a"b'), ("a;b=c", "a;b=c"), ("ä", "ä"), ("a%0D%0Ab", "a\r\nb")],
)
def test_names_are_read_as_browsers_write_them(written, name):
    assert elements(read(model(**{name: (dtypes.BYTES, (1,))}), part(written, b"v")), name) == [
        b"v"
    ]


@pytest.mark.parametrize(
    "value",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        'multipart/form-data; boundary=""',
        f"multipart/form-data; boundary={'a' * 71}",
        "multipart/form-data; boundary=other",
    ],
)
def test_a_wrong_boundary_is_refused(value):
    assert "is not a form" in refused(WORDS, part("x", b"a"), headers={"Content-Type": value})


@pytest.mark.parametrize(
    "value",
    [
        f'multipart/form-data; boundary="{BOUNDARY}"',
        f"Multipart/Form-Data; charset=x; BOUNDARY={BOUNDARY} ",
    ],
)
def test_the_boundary_may_be_quoted_and_its_name_in_capitals(value):
    assert form.is_form({"Content-Type": value})
    assert elements(read(WORDS, part("x", b"a"), headers={"Content-Type": value})) == [b"a"]


def test_text_before_and_after_the_form_is_ignored():
    assert elements(read(WORDS, data=b"preamble\r\n" + body(part("x", b"a")) + b"epilogue")) == [
        b"a"
    ]


def test_a_form_without_parts_is_empty():
    assert read(WORDS, data=body()).inputs == {}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"--",
        b"x" * 100,
        body(part("x", b"a"), end=b""),
        body(part("x", b"a"), end=b"x"),
        body(part("x", b"a"))[:-40],
        body(b"Content-Disposition: form-data\r\n\r\na"),
        body(b'Content-Disposition: attachment; name="x"\r\n\r\na'),
        body(b"\r\n\r\na"),
        body(b"no header at all"),
        body(b'Content-Disposition: form-data; name="\xff"\r\n\r\na'),
        body(part("x", b"a", None, None, "Content-Transfer-Encoding: base64")),
        body(part("x", b"a", None, None, "X-Long: " + "a" * form.MOST_PART_HEAD)),
    ],
)
def test_a_malformed_form_is_refused(data):
    assert "is not a form of multipart/form-data: " in refused(WORDS, data=data)


def test_the_number_of_parts_is_bounded():
    many = [part("x", b"a", "f")] * form.MOST_PARTS

    assert len(elements(read(WORDS, *many))) == form.MOST_PARTS
    assert "more than 1000 parts" in refused(WORDS, *many, part("x", b"a"))


def test_a_body_beyond_the_limit_is_refused_also_with_a_header_of_binary_tensors():
    headers = {"Content-Type": TYPE, "Inference-Header-Content-Length": "5"}

    assert "exceeds the maximum" in refused(WORDS, part("x", bytes(200)), headers=headers, most=100)


def test_random_bytes_and_cut_forms_end_in_an_error_or_a_request():
    seed = random.Random(7)
    whole = body(
        part("x", b"abc", "f"), part("p", b"1"), part("x", b"[1]", None, "application/json")
    )
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(seed.randrange(1, 6)):
            data[seed.randrange(len(data))] = seed.randrange(256)
        if seed.random() < 0.5:
            del data[seed.randrange(len(data)) :]
        try:
            found = read(WORDS, data=data)
        except CoreError as error:
            assert error.kind is Kind.INVALID
        else:
            assert set(found.inputs) <= {"x"}


def test_a_large_uint8_file_is_not_copied():
    data = bytearray(body(part("x", bytes(100_000), "f")))
    found = read(PIXELS, data=data)

    assert np.shares_memory(found.inputs["x"].array, np.frombuffer(data, np.uint8))
