"""The task "transcribe" of an engine in a server: tensors, refusals, cancellation."""

import io
import threading
import wave

import numpy as np
import pytest
from core_generate import (
    Description,
    Engine,
    EngineModel,
    Segment,
    Transcript,
    engine_backend,
)
from core_generate.sound import RATE
from core_testing.served import request_of

from core.errors import CoreError, Kind, cancelled
from core.telemetry.tracing.trace import Trace

pytest_plugins = ["core_testing.plugin"]


class Ears(Engine):
    """Counts samples; a segment for each half of the sound."""

    supports = frozenset({"language", "times"})

    def __init__(self):
        self.heard = []
        self.waits = threading.Event()
        self.ended = threading.Event()

    def transcribe(self, speech, stopped):
        self.heard.append(speech)
        if speech.language == "wait":
            self.waits.set()
            while not stopped():
                pass
            self.ended.set()
            raise cancelled()
        half = len(speech.samples) / RATE / 2
        halves = (Segment(0.0, half, "ö"), Segment(half, 2 * half, "two"))
        return Transcript("ö two", "de", halves if speech.times else ())


class Listener(EngineModel):
    @classmethod
    def describe(cls, config, path, backend):
        return Description(task="transcribe", supports=Ears.supports)

    def make_engine(self):
        made.append(Ears())
        return made[-1]


made = []
backend = engine_backend(Listener)


def sound(seconds=2.0):
    """Return a WAV file whose samples rise from -1 to 1."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(np.linspace(-32768, 32767, int(RATE * seconds)).astype("<i2").tobytes())
    return np.array([file.getvalue()], object)


def text(value):
    return np.array([value.encode()], object)


@pytest.fixture
def served(model_repository, serve_repository):
    model_repository.add("m", "")
    return serve_repository(backend)


def test_a_transcript_with_times(served):
    found = served.ask({"audio": sound(), "times": np.array([True])}, name="m")

    assert found["text_output"][0].decode() == "ö two" and found["language"].tolist() == [b"de"]
    assert found["duration"].tolist() == [2.0]
    assert [each.decode() for each in found["segment_text"]] == ["ö", "two"]
    assert found["segment_start"].tolist() == [0, 1] and found["segment_end"].tolist() == [1, 2]
    speech = made[-1].heard[0]
    assert (speech.language, speech.prompt, speech.temperature) == ("", "", None)
    np.testing.assert_allclose(speech.samples, np.linspace(-1, 1, 2 * RATE), atol=1e-4)


def test_a_transcript_without_times(served):
    found = served.ask({"audio": sound(), "language": text(" de "), "prompt": text("")}, name="m")

    assert len(found["segment_text"]) == len(found["segment_start"]) == 0
    assert made[-1].heard[0].language == "de"


def test_a_transcript_is_described_in_its_trace(served):
    request = request_of({"audio": sound()}, name="m")
    trace = request.trace = Trace(1, "m", 1, "", ("TIMESTAMPS",))

    served.send([request])

    attributes = vars(trace)["attributes"]
    assert {name: each for name, each in attributes.items() if name.startswith("gen_ai.")} == {
        "gen_ai.operation.name": "transcription",
        "gen_ai.provider.name": "core",
        "gen_ai.request.model": "m",
        "gen_ai.output.type": "text",
    }


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "no input 'audio'"),
        ({"audio": text("no sound")}, "'audio' is no WAV, MP3"),
        ({"audio": sound(0)}, "'audio' has no samples"),
        ({"audio": sound(), "prompt": text("x")}, "'prompt' is not supported.*language, times"),
        ({"audio": sound(), "temperature": np.array([0.5], np.float32)}, "'temperature' is not"),
        ({"audio": sound(), "temperature": np.array([3], np.float32)}, "'temperature' is 3.0"),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_name(served, inputs, said):
    with pytest.raises(CoreError, match=said) as refused:
        served.ask(inputs or {"language": text("de")}, name="m")

    assert refused.value.kind is Kind.INVALID


def test_it_has_no_other_task(served):
    request = request_of({"audio": sound()}, name="m")
    request.parameters["task"] = "tokenize"

    (refused,) = served.send([request])

    assert "'task' is 'tokenize', model 'm' has transcribe" in refused.message


def test_an_engine_learns_that_its_request_is_cancelled(served):
    asked = {"audio": sound(), "language": text("wait")}

    (found,) = served.cancelled_when(made[-1].waits, [asked], name="m")

    assert found.kind is Kind.CANCELLED
    assert made[-1].ended.wait(10)
