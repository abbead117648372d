"""Find speech in a WAV file of 16 kHz: python examples/speech/listen.py FILE.wav [SERVER]

The file is sent in pieces of 32 ms, as a microphone would: each is a request of one sequence, and the server
keeps the state of the model. It prints when speech begins and ends. It needs `tritonclient[http]`.
"""

from __future__ import annotations

import sys
import wave
from collections.abc import Iterable, Iterator

import numpy as np
import tritonclient.http as http

RATE, PIECE, BEFORE = 16_000, 512, 64  # samples; each piece is sent with the last ones before it
BEGINS, ENDS = 0.5, 0.35  # probabilities of speech: two, so that speech does not end at each breath
PAUSE_S = 0.25  # a shorter pause does not end speech


def sound(path: str) -> np.ndarray:
    """Return the samples of a WAV file: FP32[n] from -1 to 1. Raises SystemExit for another form."""
    with wave.open(path) as file:
        form = file.getframerate(), file.getsampwidth(), file.getnchannels()
        if form != (RATE, 2, 1):
            raise SystemExit(
                f"{path} has {form[0]} Hz, {form[1]} bytes, {form[2]} channels; needed: 16000, 2, 1"
            )
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 2**15


def pieces(samples: np.ndarray) -> Iterator[np.ndarray]:
    """Yield FP32[1, 576] for each 32 ms, with the 4 ms before; the last one is filled with silence."""
    count = -(-len(samples) // PIECE)
    padded = np.zeros(BEFORE + count * PIECE, np.float32)
    padded[BEFORE : BEFORE + len(samples)] = samples
    for begin in range(0, count * PIECE, PIECE):
        yield padded[np.newaxis, begin : begin + BEFORE + PIECE]


def spoken(probabilities: Iterable[float]) -> Iterator[tuple[float, float]]:
    """Yield begin and end in seconds of each part with speech, from the probability of each 32 ms."""
    begin = end = None
    now = 0.0
    for probability in probabilities:
        if probability >= BEGINS or (begin is not None and probability >= ENDS):
            begin, end = (now if begin is None else begin), now + PIECE / RATE
        elif begin is not None and end is not None and now - end >= PAUSE_S:
            yield begin, end
            begin = end = None
        now += PIECE / RATE
    if begin is not None and end is not None:
        yield begin, end


def probabilities(
    client: http.InferenceServerClient, samples: np.ndarray, sequence: int = 1
) -> Iterator[float]:
    """Yield the probability of speech in each 32 ms, each as soon as the server has answered."""
    for number, piece in enumerate(found := list(pieces(samples))):
        given = http.InferInput("input", piece.shape, "FP32")
        given.set_data_from_numpy(piece)
        answer = client.infer(
            "speech",
            [given],
            sequence_id=sequence,
            sequence_start=number == 0,
            sequence_end=number == len(found) - 1,
        )
        yield float(answer.as_numpy("output")[0, 0])


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    server = sys.argv[2] if len(sys.argv) > 2 else "localhost:8000"
    with http.InferenceServerClient(server) as client:
        for begin, end in spoken(probabilities(client, sound(sys.argv[1]))):
            print(f"{begin:6.2f} s to {end:6.2f} s")


if __name__ == "__main__":
    main()
