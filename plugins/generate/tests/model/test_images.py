"""Images of a request to an engine's model."""

import base64
import struct

import numpy as np
import pytest
from core_generate import Engine, Event

from core.errors import CoreError, Kind

from .conftest import Ended, asked, backend_of

pytest_plugins = ["core_testing.plugin"]


def png(width, height):
    """Return the head of a PNG file."""
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)


def seeing(seen):
    """Return a class of engines that put their images into a list."""

    class Sees(Engine):
        quick = True
        supports = frozenset({"images"})

        def generate(self, prompt, sampling, emit):
            seen.extend(prompt.images)
            emit(Event("x", finish="stop", count=1))
            return Ended()

    return Sees


@pytest.mark.parametrize("encode", [base64.b64encode, base64.encodebytes, bytes])
def test_an_image_is_base64_or_the_file(serve, encode):
    file = png(2, 3) + bytes(range(100))
    inputs = {**asked(), "image": np.array([encode(file)], object)}
    seen = []

    serve(backend=backend_of(seeing(seen))).stream(inputs, "m")

    assert seen == [file]


def test_at_most_128_images_are_taken(serve):
    seen = []
    served = serve(backend=backend_of(seeing(seen)))

    with pytest.raises(CoreError, match="image: 129 files, at most 128 are allowed"):
        served.stream({**asked(), "image": np.array([png(1, 1)] * 129, object)}, "m")
    served.stream({**asked(), "image": np.array([png(1, 1)] * 128, object)}, "m")

    assert len(seen) == 128


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"no picture", "image: expected an image: PNG, JPEG"),
        (png(30_000, 30_000), "image: the image has 30000 x 30000 pixels"),
    ],
)
def test_a_wrong_image_is_refused_before_the_engine_is_called(serve, file, message):
    seen = []
    served = serve(backend=backend_of(seeing(seen)))

    with pytest.raises(CoreError, match=message) as caught:
        served.stream({**asked(), "image": np.array([file], object)}, "m")

    assert caught.value.kind is Kind.INVALID
    assert seen == []
