"""Warmup samples run on every instance before the first request."""

import asyncio

import numpy as np
import pytest

import core
from core.errors import CoreError


class Note(core.ModelInstance):
    """Records its inputs; fails on a 7."""

    async def execute(self, batch):
        self.model.recorder.batches.append((self.name, batch["x"].tolist()))
        await asyncio.sleep(0)
        if (batch["x"] == 7).any():
            raise ValueError("seven")
        return {"y": batch["x"]}


def sample(name, size, data, dims="2", count=0, datatype="TYPE_FP32", tensor="x"):
    return (
        f'model_warmup {{ name: "{name}" batch_size: {size} count: {count} inputs {{ key: "{tensor}" '
        f"value: {{ data_type: {datatype} dims: [ {dims} ] {data} }} }} }} "
    )


ZERO = "zero_data: true"


async def test_every_instance_runs_every_sample(serve):
    chain = await serve(
        Note,
        sample("one", 1, ZERO)
        + sample("three", 3, ZERO)
        + 'instance_group [ { name: "g" count: 2 kind: KIND_CPU } ]',
    )

    assert chain.recorder.batches == [
        (name, [[0, 0]] * rows) for name in ("g_0", "g_1") for rows in (1, 3)
    ]
    assert chain.in_flight == 0


async def test_a_sample_runs_as_often_as_its_count_and_never_with_a_batch_size_of_zero(serve):
    chain = await serve(Note, sample("often", 1, ZERO, count=3) + sample("never", 0, ZERO))

    assert len(chain.recorder.batches) == 3


async def test_random_data_is_not_all_zero(serve):
    chain = await serve(Note, sample("random", 1, "random_data: true", dims="64"))

    assert np.array(chain.recorder.batches[0][1]).any()


async def test_data_may_come_from_a_file_of_the_model(serve, tmp_path, monkeypatch):
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "pair").write_bytes(np.array([3, 5], np.float32).tobytes())
    monkeypatch.chdir(tmp_path)

    chain = await serve(Note, sample("file", 1, 'input_data_file: "pair"'))

    assert chain.recorder.batches[0][1] == [[3, 5]]


async def test_a_sample_that_fails_does_not_fail_the_load(serve, tmp_path, monkeypatch, caplog):
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "seven").write_bytes(np.array([7], np.float32).tobytes())
    monkeypatch.chdir(tmp_path)

    chain = await serve(
        Note, sample("bad", 1, 'input_data_file: "seven"', dims="1") + sample("good", 1, ZERO)
    )

    assert len(chain.recorder.batches) == 2
    assert "warmup sample 'bad' of instance 'm_0' failed" in caplog.text


@pytest.mark.parametrize(
    "text,why",
    [
        (
            sample("s", 1, 'input_data_file: "absent"'),
            "warmup/absent: No such file or directory; it is the warmup input_data_file for input 'x' of",
        ),
        (
            sample("s", 1, 'input_data_file: "../secret"'),
            "'../secret' for input 'x' of model 'm' is outside of the folder 'warmup' of its model",
        ),
        (
            sample("s", 1, 'input_data_file: "short"'),
            "expects 8 bytes, but the data provided from short only has 7 bytes, for input 'x' of model",
        ),
        (sample("s", 1, ZERO, dims="2, 2"), "warmup sample 's' of model 'm': .* unexpected shape"),
        ('model_warmup { name: "s" batch_size: 1 }', "missing required input"),
        (sample("s", 1, ZERO, datatype="TYPE_INT32"), "data-type is 'INT32'"),
        (sample("s", 1, ZERO, tensor="z"), "'z', which the model does not have"),
    ],
)
async def test_a_warmup_sample_that_does_not_fit_the_model_fails_the_load(
    serve, text, why, tmp_path, monkeypatch
):
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "short").write_bytes(bytes(7))
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CoreError, match=why):
        await serve(Note, text)
