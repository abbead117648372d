"""Write down the notes of a sound: python examples/notes/transcribe.py [FILE.wav] [--model NAME]

The file has 22,050 Hz and one channel. It is cut into windows of 2 s that overlap. Without a file, a tune
of four notes is played. It needs `tritonclient[http]`.
"""

from __future__ import annotations

import argparse
import wave
from typing import NamedTuple

import numpy as np
import tritonclient.http as http

RATE, WINDOW = 22_050, 43_844  # samples
FRAME, FRAMES, OVERLAP = 256, 172, 30  # samples in a frame of the network; frames in a window
STEP = WINDOW - OVERLAP * FRAME
LOWEST = 21  # the first of 88 keys in MIDI's numbers: A0
SOUNDS, BEGINS = 0.3, 0.5  # least probability that a note sounds, and that it begins
SHORTEST = 11  # frames, 0.13 s
MOST_WINDOWS = 4  # of one request
NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
TUNE = [("C4", 60, 0.2, 0.8), ("E4", 64, 1.0, 0.8), ("G4", 67, 1.8, 0.8), ("C5", 72, 2.6, 1.0)]


class Note(NamedTuple):
    name: str
    begin: float
    """Seconds."""
    length: float
    """Seconds."""


def tune() -> np.ndarray:
    """Return TUNE, plucked: FP32[samples]."""
    sound = np.zeros(4 * RATE, np.float32)
    for _, key, begin, length in TUNE:
        times = np.arange(int(length * RATE)) / RATE
        pitch = 440 * 2 ** ((key - 69) / 12)
        tones = (np.sin(2 * np.pi * n * pitch * times) / n**1.5 for n in range(1, 8))
        first = int(begin * RATE)
        sound[first : first + len(times)] += 0.3 * np.exp(-2 * times) * sum(tones)
    return sound


def read(path: str) -> np.ndarray:
    """Return the samples of a WAV file: FP32[n] from -1 to 1. Raises SystemExit for another form."""
    with wave.open(path) as file:
        form = file.getframerate(), file.getsampwidth(), file.getnchannels()
        if form != (RATE, 2, 1):
            raise SystemExit(
                f"{path} has {form[0]} Hz, {form[1]} bytes, {form[2]} channels; needed: {RATE}, 2, 1"
            )
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 2**15


def windows(sound: np.ndarray) -> np.ndarray:
    """Return FP32[n, WINDOW, 1]. Each begins OVERLAP frames before the end of the one before."""
    count = -(-len(sound) // STEP) or 1
    padded = np.zeros(count * STEP + WINDOW, np.float32)
    begin = OVERLAP // 2 * FRAME  # so that the middle of the first window begins with the sound
    padded[begin : begin + len(sound)] = sound
    return np.stack([padded[i * STEP : i * STEP + WINDOW, np.newaxis] for i in range(count)])


def ask(client: http.InferenceServerClient, model: str, sound: np.ndarray) -> dict[str, np.ndarray]:
    """Return the model's outputs `note`, `onset` and `contour` for all windows: FP32[n, FRAMES, bins]."""
    answers = []
    for some in np.array_split(cut := windows(sound), -(-len(cut) // MOST_WINDOWS)):
        given = http.InferInput("input_2", some.shape, "FP32")
        given.set_data_from_numpy(some)
        answers.append(client.infer(model, [given]))
    return {
        name: np.concatenate([each.as_numpy(name) for each in answers])
        for name in ("note", "onset", "contour")
    }


def notes(outputs: dict[str, np.ndarray]) -> list[Note]:
    """Return the notes in the order in which they begin."""
    middle = slice(OVERLAP // 2, FRAMES - OVERLAP // 2)
    window, frame = np.indices(outputs["note"][:, middle, 0].shape)
    times = ((window * STEP + frame * FRAME) / RATE).ravel().tolist()
    sounds, begins = (outputs[name][:, middle].reshape(-1, 88) for name in ("note", "onset"))
    found = []
    for key in range(88):
        number = key + LOWEST
        name = f"{NAMES[number % 12]}{number // 12 - 1}"
        for first, last in parts(sounds[:, key] >= SOUNDS, peaks(begins[:, key])):
            found.append(Note(name, times[first], times[last] - times[first]))
    return sorted(found, key=lambda note: note.begin)


def peaks(begins: np.ndarray) -> np.ndarray:
    """Return in which frames a note begins: BOOL[frames]."""
    before, after = np.pad(begins, (1, 0))[:-1], np.pad(begins, (0, 1))[1:]
    return (begins >= BEGINS) & (begins > before) & (begins >= after)


def parts(sounds: np.ndarray, begins: np.ndarray) -> list[tuple[int, int]]:
    """Return the first and last frame of each note of one key. A new one ends the one before."""
    found = []
    for first in np.flatnonzero(begins):
        end = first + 1
        while end < len(sounds) and sounds[end] and not begins[end]:
            end += 1
        if end - first >= SHORTEST:
            found.append((int(first), int(end - 1)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?")
    parser.add_argument("--server", default="localhost:8000")
    parser.add_argument("--model", default="notes_onnx")
    given = parser.parse_args()
    sound = read(given.file) if given.file else tune()
    with http.InferenceServerClient(given.server) as client:
        for note in notes(ask(client, given.model, sound)):
            print(f"{note.begin:6.2f} s {note.name:3} for {note.length:.2f} s")


if __name__ == "__main__":
    main()
