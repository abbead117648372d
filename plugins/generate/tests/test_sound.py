"""sound: WAV files of all forms become 16,000 samples a second, and files beyond the bounds are refused."""

import io
import struct
import wave

import numpy as np
import pytest
from core_generate.sound import MOST_SECONDS, RATE, decode, padded

from core.errors import CoreError, Kind


def tone(rate, seconds=1.0, hertz=440.0):
    at = np.arange(round(rate * seconds)) / rate
    return (0.5 * np.sin(2 * np.pi * hertz * at)).astype(np.float32)


def riff(kind, channels, rate, bits, data, extensible=False):
    form = struct.pack(
        "<HHIIHH", 0xFFFE if extensible else kind, channels, rate, 0, channels * bits // 8, bits
    )
    if extensible:
        form += struct.pack("<HHIH14x", 22, bits, 0, kind)
    chunks = b"LIST" + struct.pack("<I", 3) + b"abc\0"  # an odd length is padded
    chunks += b"fmt " + struct.pack("<I", len(form)) + form
    chunks += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def encoded(samples, kind, bits):
    if kind == 3:
        return samples.astype(f"<f{bits // 8}").tobytes()
    if bits == 8:
        return np.round(samples * 127 + 128).astype(np.uint8).tobytes()
    whole = np.round(samples * (2 ** (bits - 1) - 1)).astype(np.int64)
    parts = whole.astype("<i8").view(np.uint8).reshape(-1, 8)
    return parts[:, : bits // 8].tobytes()


def resampled(samples, rate):
    return decode(riff(3, 1, rate, 32, encoded(samples, 3, 32)), "audio")


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize(
    ("kind", "bits", "error"),
    [(1, 8, 0.01), (1, 16, 1e-4), (1, 24, 1e-6), (1, 32, 1e-6), (3, 32, 1e-7), (3, 64, 1e-7)],
)
def test_each_form_of_samples(kind, bits, error, extensible):
    samples = tone(RATE)

    found = decode(riff(kind, 1, RATE, bits, encoded(samples, kind, bits), extensible), "audio")

    assert found.dtype == np.float32
    np.testing.assert_allclose(found, samples, atol=error)


def test_a_file_of_the_standard_library_with_two_channels():
    left, right = tone(RATE), np.zeros(RATE, np.float32)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(2)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(encoded(np.stack([left, right], 1).reshape(-1), 1, 16))

    np.testing.assert_allclose(decode(file.getvalue(), "audio"), left / 2, atol=1e-4)


@pytest.mark.parametrize("rate", [4000, 8000, 11025, 44100, 48000, 192000])
@pytest.mark.parametrize("seconds", [0.5, 61.3])
def test_other_rates_keep_a_tone_and_its_length(rate, seconds):
    found = resampled(tone(rate, seconds), rate)

    expected = tone(RATE, len(found) / RATE)
    assert abs(len(found) - seconds * RATE) <= 4
    inner = slice(RATE // 20, -RATE // 20)
    np.testing.assert_allclose(found[inner], expected[inner], atol=0.01)


def test_what_the_lower_rate_cannot_hold_is_removed():
    found = resampled(tone(48000, 2, hertz=12000), 48000)

    assert np.abs(found[1000:-1000]).max() < 0.01


def test_a_file_that_ends_before_its_length_is_read_to_its_end():
    data = riff(1, 1, RATE, 16, bytes(200))[:-100]

    assert len(decode(data, "audio")) == 50


def test_no_samples():
    assert len(decode(riff(1, 1, 8000, 16, b""), "audio")) == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no sound", "no WAV, MP3, MP4, FLAC, Ogg, WebM or AAC file"),
        (b"", "no WAV, MP3"),
        (b"RIFF\0\0\0\0WAVE", "is damaged"),
        (b"RIFF\0\0\0\0WAVEdata\0\0\0\0", "is damaged"),
        (b"RIFF\0\0\0\0WAVE" + b"LIST\0\0\0\0" * 10_000, "has 10,000 chunks or more"),
        (b"RIFF\0\0\0\0WAVEfmt \4\0\0\0abcddata\0\0\0\0", "'fmt ' has 4 bytes"),
        (riff(2, 1, RATE, 4, b"x"), "format 2 with 4 bits"),
        (riff(1, 0, RATE, 16, b"xx"), "0 channels"),
        (riff(1, 9, RATE, 16, b"xx"), "9 channels"),
        (riff(1, 1, 1, 8, bytes(10)), "1 samples a second"),
        (riff(1, 1, 4_000_000, 8, bytes(10)), "4000000 samples a second"),
        (riff(1, 1, 4000, 8, bytes(4000 * MOST_SECONDS + 4000)), "3601 seconds.* at most 3600"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(data, said):
    with pytest.raises(CoreError, match=f"the input 'audio' .*{said}") as refused:
        decode(data, "audio")

    assert refused.value.kind is Kind.INVALID


def test_silence_follows_a_very_short_sound_only():
    short, long = np.ones(3, np.float32), np.ones(RATE // 10 + 1, np.float32)

    assert padded(short).tolist() == [1, 1, 1, *[0] * (RATE // 10 - 3)]
    assert padded(long).tolist() == long.tolist()
    assert padded(short).dtype == np.float32


def test_a_sound_that_is_stopped_is_not_resampled_to_its_end():
    asked = []

    def stopped():
        asked.append(1)
        return len(asked) == 3

    with pytest.raises(CoreError) as ended:
        decode(riff(1, 1, 4000, 8, bytes(4000 * 300)), "audio", stopped)

    assert ended.value.kind is Kind.CANCELLED
    assert len(asked) == 3  # of 10 parts


def test_a_sound_that_is_stopped_while_it_is_decoded_is_not_returned():
    with pytest.raises(CoreError) as ended:
        decode(riff(1, 1, RATE, 8, bytes(9)), "audio", lambda: True)

    assert ended.value.kind is Kind.CANCELLED
