"""Messages of OpenAI's chat are read whole, or refused by the path of the wrong field."""

import base64
import struct
import time

import pytest
from core_generate.chat import FieldError, read_messages
from core_generate.chat.media import check_image
from hypothesis import given
from hypothesis import strategies as st

PNG_HEAD = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
WAV = b"RIFF\x24\0\0\0WAVEfmt "


def png(width, height):
    return PNG_HEAD + struct.pack(">II", width, height) + b"\x08\x06\0\0\0"


def jpeg(*sizes):
    frames = b"".join(
        b"\xff\xc0\0\x0b\x08" + struct.pack(">HH", h, w) + b"\x01\x01\x11\0" for w, h in sizes
    )
    return b"\xff\xd8\xff\xe0\0\x04ab" + frames + b"\xff\xda"


def url(data, kind="image/png"):
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def user(*parts):
    return [{"role": "user", "content": list(parts)}]


def image(data):
    return {"type": "image_url", "image_url": {"url": url(data), "detail": "low"}}


def test_every_kind_of_part_is_read_in_its_place():
    sound = {
        "type": "input_audio",
        "input_audio": {"data": base64.b64encode(WAV).decode(), "format": "wav"},
    }
    link = {"type": "audio_url", "audio_url": {"url": url(WAV, "audio/wav")}}

    found = read_messages(
        user({"type": "text", "text": "a"}, image(png(1, 2)), sound, image(png(3, 4)), link)
    )

    kinds = [part["type"] for part in found.messages[0]["content"]]
    assert kinds == ["text", "image", "audio", "image", "audio"]
    assert found.images == [png(1, 2), png(3, 4)]
    assert found.audio == [WAV, WAV]


def test_calls_have_objects_as_arguments_and_echoed_fields_are_accepted():
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}}
    document = [
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "annotations": [],
         "function_call": None, "audio": None, "reasoning_content": "so"},
        {"role": "tool", "tool_call_id": "x", "content": [{"type": "text", "text": "1"}]},
    ]  # fmt: skip

    first, second = read_messages(document).messages

    assert first["tool_calls"][0]["function"] == {"name": "f", "arguments": {"a": [1]}}
    assert first["reasoning_content"] == "so"
    assert second["tool_call_id"] == "x"


CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]}


@pytest.mark.parametrize(
    "document, field",
    [
        ("x", "messages"),
        ([], "messages"),
        ([1], "messages[0]"),
        ([{}], "messages[0].role"),
        ([{"role": "robot", "content": ""}], "messages[0].role"),
        ([{"role": "function", "content": ""}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": 1}], "messages[0].content"),
        ([{"role": "user", "content": "\ud800"}], "messages[0].content"),
        ([{"role": "user", "content": "", "name": 3}], "messages[0].name"),
        ([{"role": "user", "content": "", "colour": "red"}], "messages[0].colour"),
        ([{"role": "user", "content": "", "tool_calls": [1]}], "messages[0].tool_calls"),
        ([{"role": "tool", "content": ""}], "messages[0].tool_call_id"),
        (user(1), "messages[0].content[0]"),
        (user({"type": "file", "file": {}}), "messages[0].content[0].type"),
        (user({"type": "text"}), "messages[0].content[0].text"),
        (user({"type": "text", "text": "", "x": 1}), "messages[0].content[0].x"),
        (user({"type": "image_url", "image_url": {}}), "messages[0].content[0].image_url.url"),
        (user(image(png(1, 1)), image(b"hello")), "messages[0].content[1].image_url.url"),
        (user(image(png(60_000, 60_000))), "messages[0].content[0].image_url.url"),
        (user(image(b"")), "messages[0].content[0].image_url.url"),
        (user(*[image(png(1, 1))] * 129), "messages[0].content[128].image_url.url"),
        (user({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
         "messages[0].content[0].input_audio.data"),
        ([CALL], "messages[0].tool_calls[0].function.arguments"),
        ([{"role": "user", "content": "a"}] * 10_001, "messages"),
    ],
)  # fmt: skip
def test_wrong_field_is_named(document, field):
    with pytest.raises(FieldError) as error:
        read_messages(document)

    assert error.value.field == field
    assert str(error.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    "link",
    [
        "http://169.254.169.254/x",
        "file:///etc/passwd",
        "data:image/png,abc",
        "data:text/html;base64,AAAA",
        "data:image/png;base64,!!!",
        "data:image/png;base64",
        "",
    ],
)
def test_nothing_is_fetched_and_only_base64_is_read(link):
    with pytest.raises(FieldError, match=r"image_url\.url"):
        read_messages(user({"type": "image_url", "image_url": {"url": link}}))


def test_the_head_of_a_data_url_is_short():
    link = url(png(1, 1), "image/png" + ";a=1" * 500)

    with pytest.raises(
        FieldError, match=r"at most 1,000 characters before the comma.* found 2,021"
    ):
        read_messages(user({"type": "image_url", "image_url": {"url": link}}))


@pytest.mark.parametrize(
    "data",
    [
        png(40_000, 10),
        png(0, 10),
        png(10_000, 10_000),
        jpeg((10, 10), (20_000, 20_000)),
        b"GIF89a" + struct.pack("<HH", 60_000, 60_000),
        b"BM" + bytes(12) + struct.pack("<Iii", 40, 20_000, -20_000),
        b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\xff\xff\xff\xff\xff\xff",
        b"RIFF\0\0\0\0WEBPVP8L" + bytes(5) + b"\xff\xff\xff\xff",
        png(1, 1)[:18],
        b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x09\0\0\x09\0",
        b"\xff\xd8\xff",
        b"II*\0",
    ],
)
def test_image_that_is_too_large_cut_off_or_unknown_is_refused(data):
    with pytest.raises(FieldError):
        check_image(data, "x")


@pytest.mark.parametrize(
    "data",
    [
        png(5_000, 5_000),
        jpeg((640, 480)),
        b"GIF89a" + struct.pack("<HH", 10, 10),
        b"BM" + bytes(12) + struct.pack("<Iii", 40, 20, -20),
        b"BM" + bytes(12) + struct.pack("<IHH", 12, 20, 20),
        b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x09\0\0\x09\0\0",
        b"RIFF\0\0\0\0WEBPVP8L" + bytes(5) + struct.pack("<I", 9 | 9 << 14),
        b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 10, 10),
    ],
)
def test_image_of_each_format_is_accepted(data):
    assert check_image(data, "x") == data


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "text", "image_url", "url", "tool_calls", "function"]
            ),
            inner | st.sampled_from(["user", "assistant", "tool", "text", "image_url"]),
            max_size=4,
        )
    ),
)


@given(st.lists(JSON, max_size=3) | JSON)
def test_any_json_is_read_or_refused_by_a_field(document):
    try:
        read_messages(document)
    except FieldError as error:
        assert error.field.startswith("messages")


@given(
    st.binary(max_size=64),
    st.sampled_from([b"", png(1, 1)[:16], jpeg()[:6], b"RIFF\0\0\0\0WEBP", b"BM"]),
)
def test_any_bytes_are_an_image_or_refused(data, head):
    try:
        check_image(head + data, "x")
    except FieldError as error:
        assert error.field == "x"


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8\xff\0" + bytes(10**8),  # bytes that belong to no segment
        b"\xff\xd8" + b"\xff" * 10**8,  # bytes before a marker
        b"\xff\xd8\xff" + b"\xd0\xff" * 10**7,  # markers without a length
    ],
    ids=["between", "filling", "markers"],
)
def test_a_head_without_a_frame_is_read_quickly(data):
    began = time.process_time()

    with pytest.raises(FieldError, match="the header of the image is cut off"):
        check_image(data, "x")

    assert time.process_time() - began < 0.5


def test_a_png_must_begin_with_its_head():
    with pytest.raises(FieldError, match="expected an image"):
        check_image(png(1, 1).replace(b"IHDR", b"tEXt"), "x")


@pytest.mark.parametrize("levels", [300, 1000])
def test_a_wrong_value_of_many_levels_is_named(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]

    with pytest.raises(FieldError, match=f"^messages.0.: .*{levels} levels"):
        read_messages([value])
