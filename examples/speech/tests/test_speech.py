"""Speech detection as a sequence: the server keeps the state of the model."""

import importlib.util
import sys
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import core

FOLDER = Path(__file__).parents[1]
http = pytest.importorskip("tritonclient.http")
onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def listen():
    sys.path.insert(0, str(FOLDER))
    import listen

    yield listen
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def model():
    if importlib.util.find_spec("silero_vad") is None:
        pytest.skip("the model is in a package: pip install --no-deps silero-vad")
    sys.path.insert(0, str(FOLDER))
    try:
        import make_model
    finally:
        sys.path.remove(str(FOLDER))
    make_model.main()
    return make_model.FILE


@pytest.fixture(scope="module")
def address(model):
    with core.Server(model_repository=str(FOLDER / "models")) as server:
        server.start()
        yield f"localhost:{server.serve(http_port=0)['http']}"


def voice(seed, seconds=2.0, rate=16_000):
    """Return a buzz with moving formants, in bursts: not speech, but the model reacts to it."""
    random = np.random.default_rng(seed)
    times = np.arange(int(seconds * rate)) / rate
    pitch = np.cumsum(110 + 30 * np.sin(2 * np.pi * 3 * times)) / rate
    sound = sum(
        np.sin(2 * np.pi * number * pitch) * np.exp(-((number * 110 - center) ** 2) / 1e5)
        for number in range(1, 40)
        for center in (500, 1500, 2500)
    )
    bursts = np.sin(2 * np.pi * 1.5 * times + seed) > 0
    noise = random.normal(size=len(times)) * 0.002
    return (0.1 * sound * bursts + noise).astype(np.float32)


def test_each_sequence_has_the_state_of_its_own_sound(listen, address, model):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])

    def alone(samples):
        state = np.zeros((2, 1, 128), np.float32)
        for piece in listen.pieces(samples):
            output, state = session.run(["output", "stateN"], {"input": piece, "state": state})
            yield float(output[0, 0])

    def served(number, samples):
        with http.InferenceServerClient(address) as client:  # it belongs to one thread
            return list(listen.probabilities(client, samples, number + 1))

    sounds = [voice(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(served, range(4), sounds))

    for each, samples in zip(found, sounds, strict=True):
        np.testing.assert_allclose(each, list(alone(samples)), atol=1e-5)
    assert max(map(max, found)) > 0.2  # the state matters: the model hears something


def test_a_reading_is_found_between_its_pauses(listen, address):
    package = importlib.util.find_spec("moonshine_voice")
    if package is None or package.origin is None:
        pytest.skip("a reading is in a package: pip install --no-deps moonshine-voice")
    file = Path(package.origin).parent / "assets" / "two_cities.wav"
    with wave.open(str(file)) as source:
        found = np.frombuffer(source.readframes(source.getframerate() * 10), "<i2")
    samples = (found.reshape(-1, 3).mean(axis=1) / 2**15).astype(np.float32)  # 48 kHz → 16 kHz

    with http.InferenceServerClient(address) as client:
        parts = list(listen.spoken(listen.probabilities(client, samples, 9)))

    assert 1.0 < parts[0][0] < 1.5  # the reader begins after a second
    assert 3 <= len(parts) <= 5
    assert 7 < sum(end - begin for begin, end in parts) < 9


def test_short_pauses_do_not_end_speech(listen):
    quiet, speech, breath = [0.01], [0.9], [0.4]

    found = list(
        listen.spoken(quiet * 10 + speech * 5 + breath * 3 + quiet * 4 + speech * 5 + quiet * 20)
    )

    assert [(round(begin / 0.032), round(end / 0.032)) for begin, end in found] == [(10, 27)]


def test_speech_ends_with_the_sound(listen):
    assert [round(end / 0.032) for _, end in listen.spoken([0.9] * 7)] == [7]
    assert list(listen.spoken([0.4] * 9)) == []


def test_pieces_have_the_samples_before_them(listen):
    found = list(listen.pieces(np.arange(1000, dtype=np.float32)))

    assert [each.shape for each in found] == [(1, 576)] * 2
    assert found[0][0, :64].tolist() == [0] * 64
    assert found[1][0, 0] == 512 - 64
    assert found[1][0, 64 + 488 :].tolist() == [0] * 24
