"""Sound in prompts: SmolLM2 with a small encoder of random weights, which tells sounds apart."""

import base64
import io
import threading
import wave

import numpy as np
import pytest
from core_testing.engines.recorder import Recorder
from core_testing.leftovers import settles
from gguf_files import listener

import core
from core.errors import CoreError, Kind

MARKER = "<__media__>"


def tone(pitch=440.0, seconds=1.0, rate=16_000, channels=1):
    """Return a WAV file with 16 bits for each sample."""
    times = np.arange(int(seconds * rate)) / rate
    samples = (np.sin(2 * np.pi * pitch * times) * 20_000).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(channels)
        written.setsampwidth(2)
        written.setframerate(rate)
        written.writeframes(np.repeat(samples, channels).tobytes())
    return file.getvalue()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    found = tmp_path_factory.mktemp("encoder") / "mmproj.gguf"
    found.write_bytes(listener())
    return found


@pytest.fixture(scope="module")
def hearing(smollm2, encoder):
    from backend_llamacpp.engine import LlamaEngine
    from backend_llamacpp.settings import Settings

    settings = Settings(
        context=256, slots=2, threads=1, projector=encoder, media=frozenset({"audio"})
    )
    engine = LlamaEngine(smollm2, settings)
    yield engine
    engine.close()


@pytest.fixture
def said(hearing):
    """Return a function that generates and returns the Recorder. Raises the error of the last event."""
    from core_generate import Prompt, Sampling

    def said(text, *sounds, images=(), tokens=()):
        recorder = Recorder()
        prompt = Prompt(text, tokens, images, sounds)
        hearing.generate(prompt, Sampling(temperature=0.0, max_tokens=8), recorder)
        return recorder.wait()

    return said


def test_the_text_depends_on_the_sound(said):
    text = f"Listen {MARKER} It is"

    low, again, high = (said(text, tone(pitch, seconds=28)) for pitch in (220, 220, 3000))

    assert low.text == again.text != high.text
    assert low.events[-1].prompt_tokens > 30  # those of the sound are among them


def test_sounds_come_first_where_the_text_has_no_place_for_them(said):
    low, high = tone(220, seconds=28), tone(3000, seconds=28)

    assert said("They are", low, high).text == said(f"{MARKER}{MARKER}They are", low, high).text
    assert said("They are", low, high).text != said("They are", high, low).text


def test_rate_and_channels_of_a_file_make_no_other_sound(said):
    from backend_llamacpp.sounds import plain_files

    files = [tone(220, rate=rate, channels=count) for rate, count in ((16_000, 1), (48_000, 2))]
    plain = [
        np.frombuffer(each[44:], "<i2").astype(float)
        for each in map(bytes, map(next, map(plain_files, ([each] for each in files))))
    ]

    assert len(plain[0]) == len(plain[1]) == 16_000
    np.testing.assert_allclose(plain[0][100:-100], plain[1][100:-100], atol=300)
    assert said("It is", files[1]).text


@pytest.mark.parametrize(
    ("seconds", "more", "message"),
    [
        ((301, 301), {}, "2 sounds .* count as 602.0 seconds or more, at most 600"),
        ((1, 1), {"text": MARKER}, "2 sounds, so its prompt needs 2 times .* it has 1"),
        ((1,), {"tokens": (5, 6)}, "1 sounds, .* it has tokens"),
        ((1,), {"images": (b"",)}, "has 1 images and 1 sounds: this engine cannot tell"),
        ((290,), {}, "and the context of the model is 256 tokens"),
    ],
)
def test_what_the_model_cannot_read_is_refused(said, seconds, more, message):
    text = "" if "tokens" in more else "a"
    sounds = [tone(seconds=each, rate=4_000) for each in seconds]

    with pytest.raises(CoreError, match=message) as refused:
        said(more.get("text", text), *sounds, **{key: more[key] for key in more.keys() - {"text"}})

    assert refused.value.kind is Kind.INVALID


def test_a_file_that_cannot_be_decoded_is_refused(said):
    with pytest.raises(CoreError, match="the input 'audio' is no WAV, MP3"):
        said("a", b"no sound")


def test_a_short_sound_counts_as_much_as_an_encoder_computes():
    from backend_llamacpp.sounds import plain_files

    short = tone(seconds=0, rate=4_000)

    assert len(list(plain_files([short] * 20))) == 20
    with pytest.raises(CoreError, match=r"21 sounds .* count as 630\.0 seconds .* as 30 seconds"):
        list(plain_files([short] * 21))


def test_a_very_short_sound_is_followed_by_silence(said):
    assert said("It is", tone(seconds=0.001)).text


def test_a_request_that_is_cancelled_while_a_sound_is_decoded_never_reaches_llama_cpp(
    hearing, said, monkeypatch
):
    from backend_llamacpp import sounds
    from core_generate import Prompt, Sampling

    begun, goes_on, decoded, sent = threading.Event(), threading.Event(), [], []
    decode, complete = sounds.decode, hearing._library.complete

    def slowly(*given):
        decoded.append(given)
        begun.set()
        assert goes_on.wait(60)
        return decode(*given)

    def completed(*given):
        sent.append(given)
        complete(*given)

    monkeypatch.setattr(sounds, "decode", slowly)
    monkeypatch.setattr(hearing._library, "complete", completed)
    recorder = Recorder()
    prompt = Prompt("It is", audio=[tone()] * 3)
    generation = hearing.generate(prompt, Sampling(max_tokens=8), recorder)
    assert begun.wait(60)

    generation.cancel()
    goes_on.set()

    assert settles(lambda: not hearing.status().running)
    assert len(decoded) == 1 and not sent
    assert not recorder.events and recorder.error is None
    assert said("It is", tone()).text


def test_a_chat_with_sound_is_answered(smollm2, encoder, said, tmp_path):
    openai = pytest.importorskip("openai", reason="its client calls the server")
    pytest.importorskip("frontend_openai", reason="it has the routes")
    version = tmp_path / "chat" / "1"
    version.mkdir(parents=True)
    (version / "model.gguf").symlink_to(smollm2)
    (version / "mmproj.gguf").symlink_to(encoder)
    parameters = {"context": 256, "slots": 1, "threads": 1, "chat_template": TEMPLATE}
    (tmp_path / "chat" / "config.pbtxt").write_text(
        "".join(
            f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
            for key, value in parameters.items()
        )
    )
    file = tone(220)
    sound = {"data": base64.b64encode(file).decode(), "format": "wav"}
    parts = [{"type": "input_audio", "input_audio": sound}, {"type": "text", "text": " It is"}]
    expected = said(f"{MARKER} It is", file)

    with core.Server(model_repository=[str(tmp_path)]) as server:
        server.start()
        port = server.serve(http_port=0)["http"]
        with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none") as client:
            found = client.chat.completions.create(
                model="chat",
                messages=[{"role": "user", "content": parts}],
                temperature=0,
                max_completion_tokens=8,
            )

    assert found.choices[0].message.content == expected.text


TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
