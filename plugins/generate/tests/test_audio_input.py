"""The input `audio` of the task "generate": its files reach an engine that supports it, and no other."""

import threading
import time

import numpy as np
import pytest
from core_generate import Description, Engine, EngineModel, Event, engine_backend

from core.errors import CoreError, Kind, cancelled

pytest_plugins = ["core_testing.plugin"]

WAV = b"RIFF\x04\0\0\0WAVE"


class Ended:
    def cancel(self):
        pass


class Hears(Engine):
    """Keeps the prompts that it gets."""

    quick = True
    supports = frozenset({"audio"})

    def __init__(self, seen):
        self._seen = seen

    def generate(self, prompt, sampling, emit):
        self._seen.append(prompt)
        emit(Event("x", finish="stop", count=1))
        return Ended()


class Deaf(Hears):
    supports = frozenset()


@pytest.fixture
def decodes():
    """Return a class of engines that decode the sounds of a prompt until its request is cancelled."""

    class Decodes(Hears):
        quick = False
        begun, ended = threading.Event(), threading.Event()

        def generate(self, prompt, sampling, emit):
            self.begun.set()
            end = time.monotonic() + 60
            while not prompt.stopped():
                assert time.monotonic() < end, "the prompt is not stopped"
                time.sleep(0.001)
            self.ended.set()
            raise cancelled()

    return Decodes


@pytest.fixture
def serve(model_repository, serve_repository):
    """Return a function (class of engines) that serves its model `m`. Return the server and its prompts."""

    def serve(kind, config=""):
        seen = []

        class Model(EngineModel):
            @classmethod
            def describe(cls, config, path, backend):
                return Description(supports=kind.supports)

            def make_engine(self):
                return kind(seen)

        model_repository.add("m", config)
        return serve_repository(engine_backend(Model)), seen

    return serve


def asked(*files, text=b"a"):
    return {"text_input": np.array([text], object), "audio": np.array(files, object)}


def test_sounds_reach_the_engine_in_their_order(serve):
    served, seen = serve(Hears)

    served.stream(asked(WAV, b"ID3" + b"\0" * 9), "m")

    assert seen[0].audio == (WAV, b"ID3" + b"\0" * 9)
    assert seen[0].text == "a"


def test_only_a_model_whose_engine_hears_has_the_input(serve):
    served, seen = serve(Deaf)

    with pytest.raises(CoreError, match="audio") as refused:
        served.stream(asked(WAV), "m")

    assert "audio" not in [each.name for each in served.config("m").input]
    assert refused.value.kind is Kind.INVALID
    assert not seen


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((b"no sound",), "audio: expected a WAV, MP3, MP4, FLAC, Ogg, WebM or AAC file"),
        ((WAV,) * 129, "audio: 129 files, at most 128 are allowed"),
    ],
)
def test_wrong_sounds_are_refused_before_the_engine_is_called(serve, files, message):
    served, seen = serve(Hears)

    with pytest.raises(CoreError, match=message) as refused:
        served.stream(asked(*files), "m")

    assert refused.value.kind is Kind.INVALID
    assert not seen


def test_no_file_is_no_sound(serve):
    served, seen = serve(Hears)

    served.stream(asked(), "m")

    assert seen[0].audio == ()


def test_an_engine_that_decodes_sound_learns_that_its_request_is_cancelled(serve, decodes):
    served, _ = serve(decodes)

    (found,) = served.cancelled_when(decodes.begun, [asked(WAV)], name="m")

    assert found.kind is Kind.CANCELLED
    assert decodes.ended.wait(60)
