"""Pictures, and models of image.json."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from backend_image import backend
from backend_image.options import Options
from backend_image.recipe import FILE
from PIL import Image


def new_pixels(seed, height, width):
    """Return a picture UINT8[height, width, 3], red first, with areas, edges and noise."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (max(1, height // 9), max(1, width // 9), 3), np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))
    return np.clip(smooth + random.integers(-20, 20, smooth.shape), 0, 255).astype(np.uint8)


def new_file(pixels, format="JPEG", **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format, **options)
    return buffer.getvalue()


@pytest.fixture(scope="session")
def pictures():
    """pictures.pixels(seed, height, width), pictures.file(pixels, format, **options of PIL)"""
    return SimpleNamespace(pixels=new_pixels, file=new_file)


@pytest.fixture(scope="session")
def options():
    """options(**given): the Options of a step."""
    return lambda **given: Options(given, "step")


@pytest.fixture
def serve(model_repository, serve_repository):
    """serve(steps, config="", files={}): serve a model of image.json, which is called `model`."""

    def run(steps, config="", files=None):
        text = steps if isinstance(steps, str) else json.dumps(steps)
        model_repository.add("model", config, {FILE: text, **(files or {})})
        served = serve_repository(backend)
        return SimpleNamespace(
            ask=lambda **inputs: served.ask(inputs, name="model"),
            answer=lambda **inputs: served.answer(inputs, "model"),
            together=lambda many: served.together(many, name="model"),
            config=served.config("model"),
        )

    return run


@pytest.fixture(scope="session")
def as_files():
    """as_files(*files): BYTES[n, 1]"""

    def run(*files):
        found = np.empty((len(files), 1), object)
        found[:, 0] = files
        return found

    return run
