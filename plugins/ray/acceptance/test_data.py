"""Ray Data: batch inference by the same models, as docs/operate/ray.md has it."""

import numpy as np
import pytest
import ray
from core_ray import Predictor

import core

ROWS = 300


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(0).random((ROWS, 8, 8), np.float32)


@pytest.fixture(scope="module")
def expected(repository, pixels):
    with core.Server(model_repository=repository) as server:
        found = [
            server.infer("digits", {"pixels": pixels[at : at + 64]})["probabilities"]
            for at in range(0, ROWS, 64)
        ]
    return np.concatenate(found)


@pytest.fixture(scope="module")
def dataset(cluster, pixels):
    rows = [{"number": number, "pixels": pixels[number]} for number in range(ROWS)]
    return ray.data.from_items(rows, override_num_blocks=4)


def by_number(dataset):
    rows = sorted(dataset.take_all(), key=lambda row: row["number"])
    return np.stack([row["probabilities"] for row in rows])


def test_a_predictor_is_a_stage_of_tasks(dataset, repository, expected):
    stage = Predictor("digits", model_repository=str(repository))

    found = by_number(dataset.map_batches(stage, batch_size=100))

    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_class_is_a_stage_of_actors(dataset, repository, expected):
    stage = dataset.map_batches(
        Predictor,
        fn_constructor_args=["digits"],
        fn_constructor_kwargs={"model_repository": str(repository)},
        compute=ray.data.ActorPoolStrategy(size=2),
        batch_size=100,
    )

    np.testing.assert_allclose(by_number(stage), expected, rtol=1e-4)


def test_a_block_without_rows_stays_one(dataset, repository):
    none = dataset.filter(lambda row: row["number"] < 0)

    assert none.map_batches(Predictor("digits", model_repository=str(repository))).count() == 0


def test_an_error_of_the_model_is_the_error_of_the_dataset(dataset, repository):
    stage = Predictor("digits", inputs={"pixels": "number"}, model_repository=str(repository))

    with pytest.raises(Exception, match="input 'pixels'"):
        dataset.map_batches(stage).materialize()
