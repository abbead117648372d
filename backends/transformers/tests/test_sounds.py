"""Texts with sound are continued as transformers' own `generate` does. Sounds out of bounds are refused."""

import base64
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from backend_transformers.folder import Folder
from backend_transformers.settings import settings_of
from core_generate import Prompt, PromptTooLong, Sampling
from core_testing.engines.recorder import Recorder

import core
from core.config import ModelConfig
from core.errors import CoreError, Kind

pytest.importorskip("transformers", reason="transformers runs the models")
sys.path.insert(0, str(Path(__file__).parent))  # sound_models

import sound_models
import torch
import transformers
from sound_models import PLACE, RATE, TEXT, heard, silence, tone, wav

MODELS = {
    "qwen2_audio": (sound_models.qwen2_audio, "Qwen2AudioForConditionalGeneration"),
    "audio_flamingo": (sound_models.audio_flamingo, "AudioFlamingo3ForConditionalGeneration"),
    "glm_asr": (sound_models.glm_asr, "GlmAsrForConditionalGeneration"),
}
# At which a request with a short sound may end: read, decoded, before the processor, and behind it.
MOMENTS = 4
GREEDY = Sampling(max_tokens=24, temperature=0.0)


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """Return a function that returns the folder of one of MODELS. Do not change it."""
    made = {}

    def folder_of(name):
        if name not in made:
            torch.set_num_threads(1)
            torch.manual_seed(5)
            made[name] = tmp_path_factory.mktemp(name)
            MODELS[name][0](made[name])
        return made[name]

    return folder_of


@pytest.fixture(scope="module")
def engine_of(folder_of):
    """Return a function that returns the engine of one of MODELS."""
    from backend_transformers.engine import TextEngine
    from backend_transformers.loading import load

    engines = {}

    def engine_of(name):
        if name not in engines:
            config = ModelConfig(name="m")
            config.parameters["device"].string_value = "cpu"
            config.parameters["context"].string_value = "1024"
            config.parameters["batch"].string_value = "16"
            folder = Folder(folder_of(name), "m")
            settings = settings_of(config, folder)
            engines[name] = TextEngine(load(folder, settings), settings)
        return engines[name]

    yield engine_of
    for each in engines.values():
        each.close()


def begun(engine, prompt, sampling=GREEDY):
    """Start a generation. Return the Recorder of its events."""
    recorder = Recorder()
    engine.generate(prompt, sampling, recorder)
    return recorder


def tokens_of(recorder):
    return recorder.wait().tokens


def expected(folder, name, text, sounds, count=24):
    """Return the tokens that transformers' `generate` adds, and the length of its prompt."""
    model = getattr(transformers, MODELS[name][1]).from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    given = processor(text=[text], audio=sounds, sampling_rate=RATE, return_tensors="pt")
    with torch.no_grad():
        found = model.generate(**given, do_sample=False, max_new_tokens=count)
    length = given["input_ids"].shape[1]
    return found[0, length:].tolist(), length


@pytest.mark.parametrize("name", MODELS)
def test_tokens_are_those_of_transformers(folder_of, engine_of, name):
    file = wav(tone(1.7))
    wanted, length = expected(folder_of(name), name, TEXT, [heard(file)])

    events = begun(engine_of(name), Prompt(TEXT, audio=[file]))

    assert tokens_of(events) == wanted
    assert events.wait().events[-1].prompt_tokens == length
    assert length > 30  # the prompt has places for the sound


@pytest.mark.parametrize("name", MODELS)
def test_another_sound_gives_another_text(engine_of, name):
    first, second = (
        begun(engine_of(name), Prompt(TEXT, audio=[wav(tone(1.7, pitch))])) for pitch in (440, 1900)
    )

    assert tokens_of(first) != tokens_of(second)


def test_several_sounds_are_read_in_their_order(folder_of, engine_of):
    files = [wav(tone(0.9)), wav(tone(1.5, 900))]
    text = f"a{PLACE}b{PLACE}c"
    wanted, _ = expected(folder_of("qwen2_audio"), "qwen2_audio", text, [*map(heard, files)])

    found = begun(engine_of("qwen2_audio"), Prompt(text, audio=files))
    turned = begun(engine_of("qwen2_audio"), Prompt(text, audio=files[::-1]))

    assert tokens_of(found) == wanted
    assert tokens_of(turned) != wanted


def test_a_sound_longer_than_a_window_is_read_whole(folder_of, engine_of):
    file = wav(tone(45))  # at 25 tokens a second, it would not fit
    wanted, length = expected(folder_of("glm_asr"), "glm_asr", TEXT, [heard(file)], 8)

    events = begun(engine_of("glm_asr"), Prompt(TEXT, audio=[file]), Sampling(8, temperature=0.0))

    assert tokens_of(events) == wanted
    assert length > 375  # of 30 seconds


def test_generations_with_and_without_sound_run_together(folder_of, engine_of):
    engine = engine_of("qwen2_audio")
    prompts = [
        Prompt(TEXT, audio=[wav(tone(1.7))]),
        Prompt("Once upon a time"),
        Prompt(TEXT, audio=[wav(tone(0.4, 900))]),
        Prompt("there was a small town between two rivers"),
    ]
    alone = [tokens_of(begun(engine, each)) for each in prompts]

    together = [begun(engine, each) for each in prompts]

    assert [tokens_of(each) for each in together] == alone


def test_a_very_short_sound_is_followed_by_silence(engine_of):
    file = wav(tone(0.001))
    padded = wav(np.pad(tone(0.001), (0, RATE // 10 - 16)))

    short, long = (
        begun(engine_of("qwen2_audio"), Prompt(TEXT, audio=[each])) for each in (file, padded)
    )

    assert tokens_of(short) == tokens_of(long)


@pytest.mark.parametrize(
    ("name", "prompt", "seconds", "message"),
    [
        ("qwen2_audio", TEXT, [1, 1], "has 2 sounds, .* 2 times .* has 1"),
        ("qwen2_audio", "a", [1], r"'<\|AUDIO\|>', .* it has 0 of them"),
        ("qwen2_audio", [9], [1], "it has tokens, not text"),
        ("glm_asr", TEXT + PLACE, [1, 1], "cannot read this prompt"),
    ],
)
def test_what_the_model_cannot_read_is_refused(engine_of, name, prompt, seconds, message):
    asked = {"text": prompt} if isinstance(prompt, str) else {"tokens": prompt}

    with pytest.raises(CoreError, match=message) as refused:
        engine_of(name).generate(
            Prompt(**asked, audio=[*map(silence, seconds)]), GREEDY, Recorder()
        )

    assert refused.value.kind is Kind.INVALID


def test_a_file_that_cannot_be_decoded_is_refused(engine_of):
    with pytest.raises(CoreError, match="'audio' is no WAV, MP3"):
        engine_of("qwen2_audio").generate(Prompt(TEXT, audio=[b"no sound"]), GREEDY, Recorder())


@pytest.mark.parametrize(
    ("name", "seconds", "message"),
    [
        ("qwen2_audio", [31], "sound 0 has 31.0 seconds .* most 30"),
        ("glm_asr", [656], "has 656.0 seconds .* at most 655"),
        ("glm_asr", [90], "at least 1125 tokens, and the context of the model is 1024 tokens"),
        ("qwen2_audio", [30] * 3, "90.0 seconds .*, and the context of the model is 1024 tokens"),
        ("qwen2_audio", [0] * 21, "has 21 sounds, at most 20 .* computes 30 seconds for each"),
    ],
)
def test_too_much_sound_is_refused_before_it_is_prepared(
    engine_of, monkeypatch, name, seconds, message
):
    engine = engine_of(name)
    monkeypatch.setattr(engine._hearing, "_processor", None)  # it is not called
    prompt = Prompt(PLACE * len(seconds), audio=[*map(silence, seconds)])

    with pytest.raises(CoreError, match=message) as refused:
        engine.generate(prompt, GREEDY, Recorder())

    assert refused.value.kind is Kind.INVALID
    assert isinstance(refused.value, PromptTooLong) == ("context" in message)


def test_short_sounds_are_read_as_often_as_they_are_allowed(engine_of):
    prompt = Prompt(PLACE * 20, audio=[silence(0)] * 20)

    events = begun(engine_of("qwen2_audio"), prompt, Sampling(1, temperature=0.0))

    assert len(tokens_of(events)) == 1


def test_a_long_context_has_room_for_more_sounds(engine_of):
    from backend_transformers.sounds import Hearing

    engine = engine_of("qwen2_audio")
    hearing = Hearing(engine._hearing._processor, engine._stepper._model.module, "", 32_768)

    with pytest.raises(CoreError, match="has 44 sounds, at most 43 are allowed"):
        hearing.read(Prompt(PLACE * 44, audio=[silence(0)] * 44))


def test_a_folder_says_that_its_model_reads_sound(folder_of, tmp_path):
    folder = folder_of("qwen2_audio")

    settings = settings_of(ModelConfig(name="m"), Folder(folder, "m"))

    assert settings.task == "generate"
    assert "audio" in settings.supports
    assert settings.template == sound_models.TEMPLATE
    for each in folder.iterdir():
        if each.name not in ("processor_config.json", "preprocessor_config.json"):
            (tmp_path / each.name).symlink_to(each)
    with pytest.raises(CoreError, match=r"unable to find '.*preprocessor_config\.json'"):
        Folder(tmp_path, "m")


def test_a_chat_with_sound_is_answered(folder_of, engine_of, tmp_path):
    openai = pytest.importorskip("openai", reason="its client calls the server")
    pytest.importorskip("frontend_openai", reason="it has the routes")
    (tmp_path / "ears").mkdir()
    (tmp_path / "ears" / "1").symlink_to(folder_of("qwen2_audio"))
    parameters = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in {"device": "cpu", "context": 1024, "threads": 1}.items()
    )
    (tmp_path / "ears" / "config.pbtxt").write_text(parameters)
    file = wav(tone(1.7))
    sound = {"data": base64.b64encode(file).decode(), "format": "wav"}
    parts = [{"type": "input_audio", "input_audio": sound}, {"type": "text", "text": "what?"}]
    expected = begun(engine_of("qwen2_audio"), Prompt(TEXT, audio=[file]))

    with core.Server(model_repository=[str(tmp_path)]) as server:
        server.start()
        port = server.serve(http_port=0)["http"]
        with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none") as client:
            found = client.chat.completions.create(
                model="ears",
                messages=[{"role": "user", "content": parts}],
                temperature=0,
                max_completion_tokens=24,
            )
            with pytest.raises(openai.BadRequestError, match="expected a WAV, MP3"):
                parts[0]["input_audio"] = {
                    "data": base64.b64encode(b"no sound").decode(),
                    "format": "mp3",
                }
                client.chat.completions.create(
                    model="ears", messages=[{"role": "user", "content": parts}]
                )

    assert found.choices[0].message.content == expected.wait().text


def test_a_request_that_is_cancelled_while_its_sound_is_read_never_reaches_the_model(
    engine_of, monkeypatch
):
    engine, added = engine_of("qwen2_audio"), []
    add = engine._stepper.add

    def noted(generation):
        added.append(generation)
        add(generation)

    monkeypatch.setattr(engine._stepper, "add", noted)
    file = wav(tone(1.0))

    def begin(moment):
        """Start a generation whose request is cancelled from this moment on: as often as it is asked."""
        asked = itertools.count(1)
        return begun(engine, Prompt(TEXT, audio=[file], stopped=lambda: next(asked) >= moment))

    for moment in range(1, MOMENTS + 1):
        with pytest.raises(CoreError) as ended:
            begin(moment)
        assert ended.value.kind is Kind.CANCELLED
    assert not added

    assert begin(MOMENTS + 1).wait().tokens  # not cancelled
    assert len(added) == 1
