"""Damaged pipelines end no process, and many loads need no more memory."""

import random

import numpy as np
import pytest
from backend_dali.conformance import save
from core_testing.leftovers import growth_by_loads
from core_testing.served import AskedModel
from nvidia.dali import fn

from core.errors import CoreError

X = np.ones((2, 3), np.float32)


def times(factor):
    return lambda folder: save(folder, lambda x: fn.copy(x * float(factor), name="y"), x=1)


def test_truncated_and_changed_pipelines_end_no_process(serve, tmp_path):
    """A load fails, or the model answers; it may answer something else."""
    model = serve(times(2))
    chance, file = random.Random(1), tmp_path / "models" / "m" / "1" / "model.dali"
    good = file.read_bytes()
    contents = [good[: chance.randrange(len(good))] for _ in range(30)]
    for _ in range(60):
        content = bytearray(good)
        content[chance.randrange(len(content))] = chance.randrange(256)
        contents.append(bytes(content))
    for content in contents:
        file.write_bytes(content)
        try:
            model.served.load("m")
            model(x=X)
        except CoreError:
            pass
    file.write_bytes(good)
    model.served.load("m")
    assert model(x=X)["y"].tolist() == (2 * X).tolist()


@pytest.mark.parametrize("settings", [{}, {"release_after_unload": "true"}])
def test_memory_is_flat_over_a_thousand_loads(serve, settings):
    model = serve(times(2), settings=settings)

    # 500 with each setting
    assert growth_by_loads(model.served, "m", lambda: model(x=X), 500) < 8 << 20


def test_models_that_load_at_once(serve, tmp_path):
    model = serve(times(2))
    for i in range(4):
        other = tmp_path / "models" / f"n{i}" / "1"
        other.mkdir(parents=True)
        times(i + 1)(other)
        (other.parent / "config.pbtxt").write_text('backend: "dali"')

    model.served.load_together([f"n{i}" for i in range(4)])

    for i in range(4):
        assert AskedModel(model.served, f"n{i}")(x=X)["y"].tolist() == ((i + 1) * X).tolist()
