"""compressed_sound: files of all forms are heard as their WAV file is; damaged ones end with a reason."""

import io
import random
import sys
import wave

import numpy as np
import pytest
from core_generate.sound import RATE, decode

from core.errors import CoreError, Kind

av = pytest.importorskip("av")

FORMS = {
    "mp3": ("libmp3lame", 44_100),
    "flac": ("flac", 44_100),
    "ogg": ("libopus", 48_000),
    "webm": ("libopus", 48_000),
    "mp4": ("aac", 48_000),
    "adts": ("aac", 44_100),
}


def tone(rate, seconds):
    return (0.5 * np.sin(2 * np.pi * 440 * np.arange(int(rate * seconds)) / rate)).astype("f4")


def encoded(form, seconds=1.5, channels=2, video=False, level=1.0, **metadata):
    """Return a file whose channels all have one tone."""
    codec, rate = FORMS[form]
    layout = "stereo" if channels == 2 else "mono"
    target = io.BytesIO()
    with av.open(target, "w", format=form) as out:
        out.metadata.update(metadata)
        pictures = out.add_stream("mpeg4", rate=25) if video else None
        stream = out.add_stream(codec, rate=rate, layout=layout)
        if pictures:
            _add_picture(out, pictures)
        context = stream.codec_context
        context.bit_rate = 192_000  # the encoder of AAC disturbs the tone with fewer
        to_form = av.AudioResampler(context.format, layout, rate, context.frame_size or None)
        samples = np.stack([level * tone(rate, seconds)] * channels)
        frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout=layout)
        frame.rate = rate
        for each in (*to_form.resample(frame), *to_form.resample(None)):
            out.mux(stream.encode(each))
        out.mux(stream.encode(None))
    return target.getvalue()


def _add_picture(out, stream):
    stream.width = stream.height = 32
    stream.pix_fmt = "yuv420p"
    picture = np.zeros((32, 32, 3), np.uint8)
    out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
    out.mux(stream.encode(None))


def loudness(samples):
    """Return the amplitude of the tone in the middle half of a sound, and what else is there at most."""
    quarter = len(samples) // 4
    middle = samples[quarter:-quarter]
    turn = np.exp(2j * np.pi * 440 * np.arange(len(middle)) / RATE)
    phasor = 2 * (middle * turn.conj()).mean()
    return abs(phasor), np.abs(middle - (phasor * turn).real).max()


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_a_file_of_each_form_sounds_as_it_was(form, channels):
    found = decode(encoded(form, channels=channels), "audio")

    amplitude, rest = loudness(found)
    assert found.dtype == np.float32
    assert len(found) == pytest.approx(1.5 * RATE, rel=0.05)
    assert amplitude == pytest.approx(0.5, abs=0.03)
    assert rest < 0.05


def test_a_lossless_file_gives_the_samples_of_its_wav_file():
    samples = (tone(RATE, 31) * 32767).astype("<i2")
    plain, packed = io.BytesIO(), io.BytesIO()
    with wave.open(plain, "wb") as out:
        out.setparams((1, 2, RATE, 0, "NONE", ""))
        out.writeframes(samples.tobytes())
    with av.open(packed, "w", format="flac") as out:
        stream = out.add_stream("flac", rate=RATE, layout="mono")
        size = 4096
        for at in range(0, len(samples), size):
            frame = av.AudioFrame.from_ndarray(samples[None, at : at + size], "s16", "mono")
            frame.rate, frame.pts = RATE, at
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))

    np.testing.assert_array_equal(
        decode(packed.getvalue(), "audio"), decode(plain.getvalue(), "audio")
    )


def test_the_sound_of_a_film_is_read():
    amplitude, _ = loudness(decode(encoded("mp4", video=True), "audio"))

    assert amplitude == pytest.approx(0.5, abs=0.03)


def test_notes_in_an_old_encoding_do_no_harm():
    data = encoded("mp3", title="Bjork").replace(b"Bjork", b"Bj\xf6rk")

    assert len(decode(data, "audio")) > RATE


def test_a_damaged_part_is_left_out():
    data = bytearray(encoded("mp3", seconds=10))
    data[40_000:44_000] = bytes(4_000)

    found = decode(bytes(data), "audio")

    assert 9 * RATE < len(found) <= 10.2 * RATE


@pytest.mark.parametrize("form", FORMS)
def test_a_file_without_sound_is_refused(form):
    with pytest.raises(CoreError, match="the input 'audio' cannot be decoded") as refused:
        decode(encoded(form)[:64], "audio")

    assert refused.value.kind is Kind.INVALID


@pytest.mark.parametrize("form", FORMS)
def test_damaged_files_are_decoded_or_refused(form):
    data, chance = encoded(form), random.Random(7)
    for _ in range(8):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 5, 50))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            assert decode(bytes(damaged), "audio").dtype == np.float32
        except CoreError as refused:
            assert refused.kind is Kind.INVALID


def test_a_long_file_is_refused_before_it_is_decoded(monkeypatch):
    monkeypatch.setattr("core_generate.sound.MOST_SECONDS", 1)

    with pytest.raises(CoreError, match=r"has 2 seconds of sound, at most 1 are accepted"):
        decode(encoded("flac"), "audio")


def test_a_file_that_hides_its_length_is_decoded_up_to_the_bound(monkeypatch):
    monkeypatch.setattr("core_generate.sound.MOST_SECONDS", 1)
    monkeypatch.setattr("core_generate.sound._BLOCK_S", 1)

    with pytest.raises(CoreError, match="has more than 1 seconds of sound"):
        decode(encoded("adts", seconds=3), "audio")


def test_a_list_of_other_files_is_not_followed(tmp_path):
    other = tmp_path / "secret.mp3"
    other.write_bytes(encoded("mp3"))

    for data in (f"#EXTM3U\n#EXTINF:1\n{other}\n", f"ffconcat version 1.0\nfile {other}\n"):
        with pytest.raises(CoreError, match="is no WAV, MP3"):
            decode(data.encode(), "audio")


def test_joined_files_with_other_channels_are_heard_to_their_end():
    joined = encoded("mp3", channels=1) + encoded("mp3", channels=2)

    assert len(decode(joined, "audio")) > 2.8 * RATE


def test_a_file_whose_rate_changes_is_refused(monkeypatch):
    first = encoded("mp3")
    monkeypatch.setitem(FORMS, "mp3", ("libmp3lame", 48_000))

    with pytest.raises(CoreError, match="its rate changes from 44100 to 48000"):
        decode(first + encoded("mp3"), "audio")


def test_an_estimated_length_refuses_nothing():
    # FFmpeg takes the rest to have as few bytes a second as the first four.
    quiet = encoded("adts", seconds=4, level=0.0)
    loud = encoded("adts", seconds=20)

    assert len(decode(quiet + loud * 4, "audio", most_s=100)) > 80 * RATE


def test_a_codec_that_is_not_decoded_is_refused():
    data = encoded("webm").replace(b"A_OPUS", b"A_XPUS")

    with pytest.raises(
        CoreError, match=r"the input 'audio' (has sound of a codec|cannot be decoded)"
    ):
        decode(data, "audio")


def test_an_index_of_millions_of_packets_is_refused_before_it_is_made():
    data = bytearray(encoded("mp4"))
    data[data.index(b"stsz") + 12 : data.index(b"stsz") + 16] = (3_000_000).to_bytes(4, "big")

    with pytest.raises(CoreError, match="has more than 1500000 packets"):
        decode(bytes(data), "audio")


def test_a_cancelled_request_ends_at_the_next_packet():
    asked = []

    def stopped():
        asked.append(True)
        return len(asked) > 3

    with pytest.raises(CoreError) as refused:
        decode(encoded("mp3", seconds=20), "audio", stopped)

    assert refused.value.kind is Kind.CANCELLED
    assert len(asked) == 4


def test_a_cancelled_request_is_decoded_no_further():
    with pytest.raises(CoreError) as refused:
        decode(encoded("mp3"), "audio", lambda: True)

    assert refused.value.kind is Kind.CANCELLED


def test_without_pyav_the_reason_says_what_to_install(monkeypatch):
    data = encoded("mp3")
    monkeypatch.setitem(sys.modules, "av", None)

    with pytest.raises(CoreError, match=r"is no WAV file; install PyAV.*pip install av.*ffmpeg"):
        decode(data, "audio")
