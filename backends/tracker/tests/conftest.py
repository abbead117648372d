"""Settings of a tracker, and its ids for the frames of a scene."""

from pathlib import Path

import numpy as np
import pytest
from backend_tracker.native.streams import Streams
from backend_tracker.settings import settings_of

from core.config import ModelConfig


def new_settings(tracker="bytetrack", path=Path("no folder"), **parameters):
    config = ModelConfig(name="cars")
    for name, value in {"tracker": tracker, **parameters}.items():
        config.parameters[name].string_value = str(value)
    return settings_of(config, path)


@pytest.fixture
def read_settings():
    """read_settings(tracker, **parameters): the Settings of a configuration."""
    return new_settings


@pytest.fixture(scope="session")
def track():
    """track(frames, tracker, **parameters): the ids of the detections of each frame, as lists."""

    def run(frames, tracker="bytetrack", **parameters):
        streams = Streams(new_settings(tracker, **parameters))
        stream = streams.begin()
        found = []
        for frame in frames:
            ids, _, _ = streams.update(stream, frame.boxes, frame.scores, frame.classes)
            found.append(ids.tolist())
        return found

    return run


@pytest.fixture
def boxes():
    """boxes(n): n boxes FP32[n, 4] that do not touch."""

    def make(count):
        left = np.arange(count, dtype=np.float32) * 100
        return np.stack([left, left, left + 50, left + 80], axis=1)

    return make
