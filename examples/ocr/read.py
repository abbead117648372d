"""Read the text of a picture: python examples/ocr/read.py [FILE] [--server ADDRESS] [--model read_page_bls]

Without a file it draws a page and sends that. It needs `tritonclient[http]`, and for the drawing pillow.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
import tritonclient.http as http

LEAST_SCORE = 0.5
PAGE = [  # x, y, size of the letters, text
    (60, 40, 52, "Opening hours"),
    (60, 140, 32, "Monday to Friday"),
    (520, 140, 32, "9:00-17:30"),
    (60, 200, 32, "Saturday"),
    (520, 200, 32, "10:00-14:00"),
    (60, 300, 26, "Closed on public holidays. Tickets: 12 euros."),
    (60, 350, 26, "Call 030 5550123 or write to desk@museum.example."),
]


def drawn() -> bytes:
    """Return PAGE as a PNG file."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (900, 440), "white")
    pen = ImageDraw.Draw(page)
    for x, y, size, text in PAGE:
        pen.text((x, y), text, "black", ImageFont.load_default(size))
    file = io.BytesIO()
    page.save(file, "png")
    return file.getvalue()


def read(client: http.InferenceServerClient, model: str, file: bytes) -> list[tuple[str, float]]:
    """Return the lines that the model reads, each with its score, in reading order."""
    image = http.InferInput("image", [1], "BYTES")
    image.set_data_from_numpy(np.array([file], object))
    answer = client.infer(model, [image])
    texts = [text.decode() for text in answer.as_numpy("texts")]
    return list(zip(texts, answer.as_numpy("scores").tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--server", default="localhost:8000")
    parser.add_argument("--model", default="read_page")
    given = parser.parse_args()
    file = given.file.read_bytes() if given.file else drawn()
    with http.InferenceServerClient(given.server) as client:
        for text, score in read(client, given.model, file):
            if score >= LEAST_SCORE:
                print(f"{score:.2f} {text}")


if __name__ == "__main__":
    main()
