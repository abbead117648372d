"""/v1/audio/transcriptions by the package openai, over a decoupled Python model and a function."""

import http.client
import io
import threading
import wave

import numpy as np
import pytest

openai = pytest.importorskip("openai")

MODEL = """
import io
import wave

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            data = pb_utils.get_input_tensor_by_name(request, "audio").as_numpy()[0]
            frames = wave.open(io.BytesIO(data)).getnframes()
            language = pb_utils.get_input_tensor_by_name(request, "language")
            found = "?" if language is None else language.as_numpy()[0].decode()
            for word in (f"{frames} frames", f" in {found}"):
                tensor = pb_utils.Tensor("text", np.array([word.encode()], np.object_))
                sender.send(pb_utils.InferenceResponse([tensor]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CONFIG = """
backend: "python"
model_transaction_policy { decoupled: true }
input [
  { name: "audio" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "language" data_type: TYPE_STRING dims: [ 1 ] optional: true }
]
output [ { name: "text" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


# The first bytes of files that models with an input `audio` get as they are.
FORMS = {
    "flac": b"fLaC",
    "m4a": bytes(4) + b"ftypM4A ",
    "mp3": b"ID3",
    "ogg": b"OggS",
    "webm": b"\x1aE\xdf\xa3",
}


def sound(frames=100):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(bytes(2 * frames))
    return file.getvalue()


@pytest.fixture
def port(open_server, tmp_path):
    pytest.importorskip("backend_python")
    (tmp_path / "frames" / "1").mkdir(parents=True)
    (tmp_path / "frames" / "1" / "model.py").write_text(MODEL)
    (tmp_path / "frames" / "config.pbtxt").write_text(CONFIG)
    return open_server(model_repository=[str(tmp_path)])[1]


@pytest.fixture
def sdk(port):
    address = f"http://127.0.0.1:{port}/v1"
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as found:
        yield found


def test_the_texts_of_all_responses_are_one(sdk):
    file = ("a.wav", sound(7))

    found = sdk.audio.transcriptions.create(model="frames", file=file)
    text = sdk.audio.transcriptions.create(
        model="frames", file=file, language="en", response_format="text"
    )

    assert found.text == "7 frames in ?"
    assert text.strip() == "7 frames in en"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"temperature": 0.5}, "temperature"),
        ({"prompt": "x"}, "prompt"),
        ({"response_format": "srt"}, "response_format"),
        ({"response_format": "verbose_json"}, "response_format"),
        ({"response_format": "xml"}, "response_format"),
        ({"timestamp_granularities": ["word"]}, "timestamp_granularities[]"),
        ({"timestamp_granularities": ["segment"]}, "timestamp_granularities[]"),
        ({"stream": True}, "stream"),
        ({"extra_body": {"n": 2}}, "n"),
        ({"file": ("a.wav", b"no sound")}, "file"),
    ],
)
def test_a_wrong_field_is_named(sdk, change, param):
    with pytest.raises(openai.BadRequestError) as refused:
        sdk.audio.transcriptions.create(**{"model": "frames", "file": ("a.wav", sound()), **change})

    assert refused.value.param == param


def test_other_models_and_bodies_are_refused(sdk, port, connect):
    with pytest.raises(openai.NotFoundError):
        sdk.audio.transcriptions.create(model="nothing", file=("a.wav", sound()))
    with pytest.raises(openai.BadRequestError, match="BYTES input audio"):
        sdk.audio.transcriptions.create(model="words", file=("a.wav", sound()))
    status, found = connect(port).ask("/v1/audio/transcriptions", {"model": "frames"})
    assert (status, "multipart" in found["error"]["message"]) == (400, True)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_of_each_form_reaches_the_model_as_it_is(open_server, form):
    server, port = open_server()
    file = FORMS[form] + bytes(100)
    server.bind(
        "ears",
        lambda audio: {"text_output": np.array([str(audio[0] == file).encode()], object)},
        inputs={"audio": ("BYTES", [1])},
        outputs={"text_output": ("BYTES", [1])},
    )

    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none") as client:
        found = client.audio.transcriptions.create(model="ears", file=(f"a.{form}", file))

    assert found.text == "True"


def test_a_client_that_goes_cancels_the_model(open_server):
    server, port = open_server()
    begun, ended = threading.Event(), threading.Event()

    def endless(audio):
        begun.set()
        try:
            while True:
                yield {"text_output": np.array([b"x"], object)}
        finally:
            ended.set()

    server.bind(
        "endless_sound",
        endless,
        inputs={"audio": ("BYTES", [1])},
        outputs={"text_output": ("BYTES", [1])},
    )
    form = (
        b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nendless_sound\r\n--b\r\n'
        b'Content-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n%b\r\n--b--\r\n'
    ) % sound(2)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    connection.request("POST", "/v1/audio/transcriptions", form, headers)
    assert begun.wait(10)

    connection.close()

    assert ended.wait(10)


SEGMENTS = {
    "segment_text": ("BYTES", [-1]),
    "segment_start": ("FP32", [-1]),
    "segment_end": ("FP32", [-1]),
    "language": ("BYTES", [1]),
    "duration": ("FP32", [1]),
}


@pytest.fixture
def timed(open_server):
    """A client of a model with times, whose texts would break subtitles, and the inputs that it saw."""
    server, port = open_server()
    seen = []

    def subtitles(audio, times=None, language=None):
        seen.append(times if times is None else bool(times[0]))
        parts = [" Well --> <b>ö</b>\n\nnow ", "R&D"]
        yield {
            "text_output": np.array(["".join(parts).encode()], object),
            "segment_text": np.array([each.encode() for each in parts], object),
            "segment_start": np.array([0.0, 3599.9996], np.float32),
            "segment_end": np.array([1.25, 3725.5], np.float32),
            "language": np.array([b"en"], object),
            "duration": np.array([3725.5], np.float32),
        }

    server.bind(
        "subtitles",
        subtitles,
        inputs={"audio": ("BYTES", [1]), "times": ("BOOL", [1]), "language": ("BYTES", [1])},
        outputs={"text_output": ("BYTES", [1]), **SEGMENTS},
    )
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none") as found:
        yield found, seen


def test_times_as_json(timed):
    sdk, seen = timed

    found = sdk.audio.transcriptions.create(
        model="subtitles",
        file=("a.wav", sound()),
        response_format="verbose_json",
        timestamp_granularities=["segment"],
    )

    assert seen == [True]
    assert (found.language, found.duration, found.usage.seconds) == ("en", 3725.5, 3726)
    first, second = found.segments
    assert (first.id, first.start, first.end, second.id, second.start) == (0, 0, 1.25, 1, 3600)
    assert first.text + second.text == found.text


def test_subtitles(timed):
    sdk, seen = timed
    asked = {"model": "subtitles", "file": ("a.wav", sound())}

    srt = sdk.audio.transcriptions.create(**asked, response_format="srt")
    vtt = sdk.audio.transcriptions.create(**asked, response_format="vtt")

    assert srt == (
        "1\n00:00:00,000 --> 00:00:01,250\nWell -> <b>ö</b> now\n\n"
        "2\n01:00:00,000 --> 01:02:05,500\nR&D\n\n"
    )
    assert vtt == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.250\nWell -> &lt;b>ö&lt;/b> now\n\n"
        "01:00:00.000 --> 01:02:05.500\nR&amp;D\n\n"
    )
    assert sdk.audio.transcriptions.create(**asked).text.startswith(" Well")
    assert seen == [True, True, None]
