"""The parameter `hardware`: devices that are not there, and what the CPU does in their place.

No device is needed, and none is used: what would open one fails, or does nothing.
"""

import io
import logging

import av
import numpy as np
import pytest
from av.error import FFmpegError
from backend_video import hardware
from backend_video.decoder import Decoder
from backend_video.films import decoded, number_in
from backend_video.hardware import Hardware, opened
from backend_video.settings import settings_of
from backend_video.stop import Stop

import core
from core.config import ModelConfig
from core.errors import CoreError, Kind


@pytest.fixture
def no_device(monkeypatch):
    """FFmpeg knows `cuda`, and can open no device."""

    def fail(self):
        raise FFmpegError(1, "no driver")

    monkeypatch.setattr(hardware, "known", lambda: {"cuda": "h264"})
    monkeypatch.setattr(Hardware, "_opened", fail)


@pytest.fixture
def any_device(monkeypatch):
    """FFmpeg knows `cuda`, and devices need not be opened."""
    monkeypatch.setattr(hardware, "known", lambda: {"cuda": "h264"})
    monkeypatch.setattr(Hardware, "_opened", lambda self: None)


def settings(tmp_path, text):
    config = ModelConfig(name="m")
    config.parameters["hardware"].string_value = text
    return settings_of(config, tmp_path)


def frames_of(data, device):
    decoder = Decoder(
        *(io.BytesIO(data), "film", Stop()),
        **{"most_pixels": 10**6, "threads": 1, "timeout_s": 5, "hardware": device},
    )
    try:
        return [each.to_ndarray(format="rgb24") for each in decoder.frames()]
    finally:
        decoder.close()


def gif():
    """A film that no device decodes."""
    target = io.BytesIO()
    with av.open(target, "w", format="gif") as output:
        stream = output.add_stream("gif", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "rgb8"
        for number in range(3):
            picture = np.full((48, 64, 3), 60 * number, np.uint8)
            output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        output.mux(stream.encode())
    return target.getvalue()


def test_the_devices_of_this_installation_are_types_of_ffmpeg():
    assert set(hardware.known()) <= set(av.codec.hwaccel.hwdevices_available())


@pytest.mark.parametrize("text", ["none", "auto", "cuda", "cuda:1"])
def test_known_values_are_taken_before_any_device_is_opened(tmp_path, no_device, text):
    assert settings(tmp_path, text).hardware == text


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"cuda": "h264", "vaapi": "h264"}, "a device that FFmpeg of this .* can use: cuda, vaapi"),
        ({}, "none or auto: FFmpeg of this installation can use no devices"),
    ],
)
@pytest.mark.parametrize("text", ["gpu", "gpu:1", "", "Cuda"])
def test_an_unknown_device_is_an_error_that_names_the_known_ones(
    tmp_path, monkeypatch, known, expected, text
):
    monkeypatch.setattr(hardware, "known", lambda: known)

    with pytest.raises(CoreError, match=f"parameter 'hardware' .* is '{text}', .*{expected}"):
        settings(tmp_path, text)


def test_a_device_that_is_not_there_fails_the_load(no_device):
    with pytest.raises(CoreError, match=r"'hardware' .*cannot open \(cuda:1: no driver\)") as error:
        opened("m", "cuda:1")
    assert error.value.kind is Kind.INVALID


def test_a_device_with_a_wrong_number_fails_the_load():
    if "cuda" not in hardware.known():
        pytest.skip("FFmpeg of this installation does not know cuda")
    with pytest.raises(CoreError, match=r"a device that FFmpeg cannot open .*cuda:one"):
        opened("m", "cuda:one")


def test_auto_without_a_device_decodes_on_the_cpu_and_says_so(
    tmp_path, config, no_device, film50, caplog
):
    (tmp_path / "frames" / "1").mkdir(parents=True)
    (tmp_path / "frames" / "config.pbtxt").write_text(config({"hardware": "auto"}))

    with (
        caplog.at_level(logging.INFO, "core"),
        core.Server(model_repository=str(tmp_path)) as running,
    ):
        answers = list(running.stream("frames", {"file": [film50]}))

    assert [number_in(each["frame"]) for each in answers] == list(range(50))
    for answer, frame in zip(answers, decoded(film50), strict=True):
        assert np.array_equal(answer["frame"], frame)
    assert "the CPU decodes, as FFmpeg can open no device (cuda: no driver)" in caplog.text


def test_a_device_that_is_lost_after_the_load_leaves_the_work_to_the_cpu(no_device, film50, caplog):
    with caplog.at_level(logging.WARNING, "core"):
        found = frames_of(film50, Hardware("cuda", is_required=False))

    assert np.array_equal(found, decoded(film50))
    assert "cannot open the device 'cuda' any more: no driver" in caplog.text


def test_a_required_device_that_is_lost_after_the_load_is_an_error(no_device, film50):
    with pytest.raises(CoreError, match="'film': FFmpeg cannot open the device 'cuda'") as error:
        frames_of(film50, Hardware("cuda", is_required=True))
    assert error.value.kind is Kind.UNAVAILABLE


def test_a_video_that_no_device_decodes_is_for_the_cpu(any_device):
    found = frames_of(gif(), Hardware("cuda", is_required=False))

    assert len(found) == 3
    assert np.array_equal(found, decoded(gif()))


def test_a_video_that_a_required_device_does_not_decode_is_refused(any_device):
    with pytest.raises(CoreError, match="no video that the device 'cuda' decodes; with 'auto'"):
        frames_of(gif(), Hardware("cuda", is_required=True))
