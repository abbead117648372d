"""Refusals at load: for a missing backend, or for the models of an ensemble's steps."""

# ruff: noqa: E501 (a searchable text stays on one line)

import numpy as np
import pytest

from core.errors import CoreError, Kind
from core.request import InferenceRequest
from core.tensor import Tensor

FLAT = """
backend: "test"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
BATCHING = FLAT + "max_batch_size: 8"
MANY = FLAT + "model_transaction_policy { decoupled: true }"


def ensemble(*models, rest="", dims="2"):
    """Models one after the other."""
    names = ["x", *(f"t{index}" for index in range(1, len(models))), "y"]
    steps = "".join(
        f'step {{ model_name: "{model}" model_version: -1 '
        f'input_map {{ key: "x" value: "{names[index]}" }} '
        f'output_map {{ key: "y" value: "{names[index + 1]}" }} }} '
        for index, model in enumerate(models)
    )
    return f"""
    platform: "ensemble" {rest}
    input [ {{ name: "x" data_type: TYPE_FP32 dims: [ {dims} ] }} ]
    output [ {{ name: "y" data_type: TYPE_FP32 dims: [ {dims} ] }} ]
    ensemble_scheduling {{ {steps} }}
    """


@pytest.fixture
async def loaded(folder, manage):
    """Load the ensemble `e` of models that multiply by 2 (`flat`, `batching`) or stream (`many`)."""
    folder.model("flat", text="2", config=FLAT)
    folder.model("batching", text="2", config=BATCHING)
    folder.model("many", text="2", config=MANY)

    async def load(config):
        folder.model("e", config=config)
        manager = manage()
        await manager.start()
        await manager.load("e", {})
        return manager

    return load


async def asked(manager, values, name="e"):
    """The shape and the values of the answer."""
    x = Tensor.of("x", np.array(values, np.float32))
    y = (await manager.infer(InferenceRequest(name, {"x": x}))).output("y")
    return y.shape, y.array.ravel().tolist()


ROW = [[1, 2]]


@pytest.mark.parametrize(
    ("config", "values", "shape"),
    [
        (ensemble("batching"), [1, 2], (2,)),
        (ensemble("flat", "batching"), [1, 2], (2,)),
        (ensemble("batching", "flat"), [1, 2], (2,)),
        (ensemble("flat", rest="max_batch_size: 8"), ROW, (1, 2)),
        (ensemble("flat", "batching", rest="max_batch_size: 8"), ROW, (1, 2)),
        (ensemble("batching", "flat", rest="max_batch_size: 8"), ROW, (1, 2)),
        (ensemble("batching", dims="-1, 2"), [[1, 2], [3, 4]], (2, 2)),
    ],
)
async def test_models_with_and_without_a_batch_dimension_follow_each_other(
    loaded, config, values, shape
):
    manager = await loaded(config)
    times = 2 ** config.count("model_name")

    assert await asked(manager, values) == (shape, [times * v for v in np.ravel(values).tolist()])


async def test_a_model_without_a_batch_dimension_takes_one_row_at_a_time(loaded):
    manager = await loaded(ensemble("flat", rest="max_batch_size: 8"))

    with pytest.raises(
        CoreError, match="unexpected shape for input 'x' for model 'flat'"
    ) as caught:
        await asked(manager, [[1, 2], [3, 4]])

    assert caught.value.kind is Kind.INVALID


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            ensemble("flat", "flat").replace("-1 input_map { key: \"x\" value: \"t1\"", "7 input_map { key: \"x\" value: \"t1\""),
            "ensemble 'e' depends on 'flat' whose required version 7 is not loaded: step 1 has it as model_version",
        ),
        (
            ensemble("nowhere", "flat", "lost"),
            "ensemble 'e' contains models that are not available or ambiguous: 'nowhere', 'lost'",
        ),
    ],
)  # fmt: skip
async def test_the_models_of_the_steps_must_serve(loaded, config, expected):
    with pytest.raises(CoreError) as caught:
        await loaded(config)

    assert caught.value.kind is Kind.INVALID
    assert f"Invalid argument: {expected}" in caught.value.message


async def test_answers_of_a_decoupled_step_are_not_cached(loaded):
    with pytest.raises(CoreError) as caught:
        await loaded(ensemble("many", rest="response_cache { enable: true }"))

    assert caught.value.kind is Kind.INVALID
    assert (
        "Invalid argument: Response Cache does not currently support model e with 'decoupled' "
        "transaction policy" in caught.value.message
    )


@pytest.mark.parametrize(("model", "decoupled"), [("flat", False), ("many", True)])
@pytest.mark.parametrize("said", ["", "model_transaction_policy { decoupled: true }"])
async def test_an_ensemble_is_decoupled_if_a_step_is(loaded, model, decoupled, said):
    version = (await loaded(ensemble(model, rest=said))).resolve("e")

    assert version.config.model_transaction_policy.decoupled is decoupled
    assert version.signature.decoupled is decoupled


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('platform: "ensemble"', "ensemble scheduling must be set for ensemble m"),
        ('platform: "foo"', "unexpected platform type 'foo' for m"),
        ('default_model_filename: "a.bin"', "must specify 'platform' or 'backend' for 'm'"),
        ('backend: "test" default_model_filename: "/etc/passwd"', "is outside model directory"),
        ('backend: "test" max_batch_size: -1', "'max_batch_size' must be non-negative value for m"),
    ],
)
async def test_an_always_invalid_configuration_opens_no_backend(
    folder, manage, backend, config, expected
):
    folder.model("m", config=config)
    manager = manage()
    await manager.start()

    with pytest.raises(CoreError, match="load failed for model 'm'") as caught:
        await manager.load("m", {})

    assert caught.value.kind is Kind.INVALID
    assert expected in caught.value.message
    assert backend.calls == []


async def test_a_parameter_that_its_backend_does_not_know_is_logged_and_the_model_serves(
    folder, backend, manage, caplog
):
    backend.known_parameters = ("threads",)
    slip = 'parameters { key: "thread" value { string_value: "2" } }'
    folder.model("flat", text="2", config=FLAT + slip)
    manager = manage()
    await manager.start()

    await manager.load("flat", {})

    assert await asked(manager, [1, 2], "flat") == ((2,), [2, 4])
    told = "model 'flat': backend 'test' has no parameter 'thread'; it has no effect; is 'threads' meant?"
    assert caplog.messages.count(told) == 1


@pytest.mark.parametrize(
    ("config", "file", "told"),
    [
        ("dynamic_batching { }", "1/batchstrategy.so", True),
        ("dynamic_batching { }", "batchstrategy.so", True),
        ("", "batchstrategy.so", False),  # nobody would ask it
        ("dynamic_batching { }", "1/other.so", False),
        (
            'dynamic_batching { } parameters { key: "TRITON_BATCH_STRATEGY_PATH" '
            'value { string_value: "/opt/volume.so" } }',
            "1/other.so",
            True,
        ),
    ],
)
async def test_a_library_of_custom_batching_is_not_passed_over_in_silence(
    folder, manage, caplog, config, file, told
):
    folder.model("flat", text="2", config=BATCHING + " " + config)
    (folder.path / "flat" / file).write_text("")
    manager = manage()
    await manager.start()

    await manager.load("flat", {})

    found = [text for text in caplog.messages if "libraries of Triton's custom batching" in text]
    assert len(found) == told
    assert all(file in text or "/opt/volume.so" in text for text in found)
