"""One network in three formats, by three backends: the same outputs, and the notes that were played.

CORE_ALL_FORMATS   1: all formats must be there, and what is not installed fails the tests
"""

import importlib.util
import os
import runpy
import shutil
import wave
from pathlib import Path

import numpy as np
import pytest

import core

FOLDER = Path(__file__).parents[1]
ALL = os.environ.get("CORE_ALL_FORMATS") == "1"
lacks = pytest.fail if ALL else pytest.skip
http = (importlib.import_module if ALL else pytest.importorskip)("tritonclient.http")
CLIENT = runpy.run_path(str(FOLDER / "transcribe.py"))
PLAYED = [name for name, *_ in CLIENT["TUNE"]]
NEEDS = {"onnx": "onnxruntime", "litert": "ai_edge_litert", "tensorflow": "tensorflow"}


@pytest.fixture(scope="module")
def formats():
    """Formats whose framework and backend are installed."""
    if importlib.util.find_spec("basic_pitch") is None:
        lacks("the network is in a package: pip install --no-deps basic-pitch")
    found = [
        name
        for name, framework in NEEDS.items()
        if importlib.util.find_spec(framework) and importlib.util.find_spec(f"backend_{name}")
    ]
    assert not ALL or found == list(NEEDS), f"only {found} can be served here"
    return found


@pytest.fixture(scope="module")
def client(formats, tmp_path_factory):
    """A client of a server that has the network in all these formats."""
    repository = tmp_path_factory.mktemp("notes") / "models"
    if "onnx" in formats:
        shutil.copytree(FOLDER / "models" / "notes_onnx", repository / "notes_onnx")
    runpy.run_path(str(FOLDER / "make_models.py"))["main"](formats, repository)
    with core.Server(model_repository=str(repository)) as server:
        server.start()
        with http.InferenceServerClient(f"localhost:{server.serve(http_port=0)['http']}") as found:
            yield found


def test_each_format_has_the_outputs_of_the_others(client, formats):
    sound = (
        np.random.default_rng(3).normal(0, 0.1, 60_000).astype(np.float32)
        + CLIENT["tune"]()[:60_000]
    )
    if len(formats) < 2:
        pytest.skip(f"only {formats} can be served here")

    first, *others = (CLIENT["ask"](client, f"notes_{each}", sound) for each in formats)

    assert {name: array.shape for name, array in first.items()} == {
        "note": (2, 172, 88),
        "onset": (2, 172, 88),
        "contour": (2, 172, 264),
    }
    assert all(np.ptp(array) > 0.1 for array in first.values())
    for name, array in first.items():
        for other in others:
            np.testing.assert_allclose(other[name], array, rtol=0, atol=1e-4, err_msg=name)


def test_each_format_hears_what_was_played(client, formats):
    for each in formats:
        heard = CLIENT["notes"](CLIENT["ask"](client, f"notes_{each}", CLIENT["tune"]()))

        assert [note.name for note in heard] == PLAYED, each
        for note, (_, _, begin, length) in zip(heard, CLIENT["TUNE"], strict=True):
            assert abs(note.begin - begin) < 0.05
            assert abs(note.length - length) < 0.1


def test_a_file_is_read_as_it_was_written(tmp_path):
    played = CLIENT["tune"]()
    with wave.open(str(tmp_path / "tune.wav"), "wb") as file:
        file.setparams((1, 2, 22_050, 0, "NONE", ""))
        file.writeframes((played * 2**15).astype("<i2").tobytes())

    np.testing.assert_allclose(CLIENT["read"](str(tmp_path / "tune.wav")), played, atol=2**-15)


def test_a_file_of_another_rate_is_refused(tmp_path):
    with wave.open(str(tmp_path / "phone.wav"), "wb") as file:
        file.setparams((1, 2, 8_000, 0, "NONE", ""))

    with pytest.raises(SystemExit, match="8000 Hz, 2 bytes, 1 channels; needed: 22050, 2, 1"):
        CLIENT["read"](str(tmp_path / "phone.wav"))


def test_the_middles_of_the_windows_are_the_sound():
    sound = np.arange(100_000, dtype=np.float32)
    edge, step = 15 * 256, CLIENT["STEP"]

    found = CLIENT["windows"](sound)

    assert found.shape == (3, 43_844, 1)
    assert found[:, edge : edge + step].ravel()[: len(sound)].tolist() == sound.tolist()
    assert CLIENT["windows"](sound[:0]).shape == (1, 43_844, 1)


def test_a_key_that_is_struck_again_is_a_new_note():
    sounds = np.array([False] + [True] * 40 + [False] * 4)
    begins = np.zeros(45, bool)
    begins[[1, 25, 43]] = True

    assert CLIENT["parts"](sounds, begins) == [(1, 24), (25, 40)]  # the last one is too short
