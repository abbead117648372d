"""Ensembles, and the models that are loaded and unloaded with them."""

import asyncio

import pytest

ENSEMBLE = """
platform: "ensemble"
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ -1 ] }} ]
ensemble_scheduling {{ {steps} }}
"""


def ensemble(*models):
    """A config that sends x through each model in turn."""
    names = ["x", *(f"t{i}" for i in range(1, len(models))), "y"]
    return ENSEMBLE.format(
        steps="".join(
            f'step {{ model_name: "{model}" model_version: -1 '
            f'input_map {{ key: "x" value: "{names[i]}" }} '
            f'output_map {{ key: "y" value: "{names[i + 1]}" }} }}'
            for i, model in enumerate(models)
        )
    )


@pytest.fixture
async def composed(folder, started, config):
    """double and triple; six = double, triple; twelve = six, double."""
    folder.model("double", config=config, text="2")
    folder.model("triple", config=config, text="3")
    folder.model("six", config=ensemble("double", "triple"))
    folder.model("twelve", config=ensemble("six", "double"))
    return await started()


async def test_an_ensemble_brings_the_models_that_it_is_composed_of(composed):
    await composed.load("twelve", {})

    assert {entry["name"] for entry in composed.index(True)} == {
        "double",
        "triple",
        "six",
        "twelve",
    }
    assert await composed.factor("twelve") == 12


async def test_an_ensemble_does_not_take_its_models_along(composed):
    await composed.load("six", {})

    await composed.unload("six")

    assert composed.ready_versions("double") == [1]


async def test_unload_dependents_unloads_models_without_other_users(composed):
    await composed.load("twelve", {})
    await composed.load("triple", {})

    await composed.unload("twelve", True)

    assert {entry["name"] for entry in composed.index(True)} == {"triple"}


async def test_unload_dependents_keeps_models_of_another_ensemble(composed):
    await composed.load("six", {})
    await composed.load("twelve", {})

    await composed.unload("twelve", True)

    assert await composed.factor("six") == 6


async def test_an_ensemble_goes_and_comes_back_with_a_model_that_it_needs(composed):
    await composed.load("six", {})

    await composed.unload("triple")
    assert composed.ready_versions("six") == []
    await composed.load("triple", {})

    assert await composed.factor("six") == 6


async def test_an_unloaded_ensemble_does_not_come_back(composed):
    await composed.load("six", {})
    await composed.unload("six")

    await composed.unload("triple")
    await composed.load("triple", {})

    assert composed.ready_versions("six") == []


async def test_a_request_in_an_ensemble_ends_before_its_models_go(composed, backend):
    await composed.load("six", {})
    backend.go.clear()
    reply = composed.ask("six")

    unload = asyncio.ensure_future(composed.unload("six", True))
    await asyncio.sleep(0)
    backend.go.set()
    await unload

    assert (await reply).output("y").array[0] == 6


async def test_an_ensemble_without_one_of_its_models_names_it(folder, composed, refusal):
    folder.model("eight", config=ensemble("double", "four"))

    error = await refusal(composed.load("eight", {}))

    assert "contains models that are not available or ambiguous: 'four'" in error.message
    assert composed.ready_versions("double") == [1]


async def test_an_ensemble_whose_model_fails_has_the_reason(folder, composed, config, refusal):
    folder.model("four", config=config, text="fail: no weights")
    folder.model("eight", config=ensemble("double", "four"))

    error = await refusal(composed.load("eight", {}))

    assert "load failed for model 'eight'" in error.message
    assert "load failed for model 'four'" in error.message and "no weights" in error.message


async def test_an_ensemble_of_itself_is_refused(folder, composed, refusal):
    folder.model("a", config=ensemble("b"))
    folder.model("b", config=ensemble("a"))

    error = await refusal(composed.load("a", {}))

    assert "load failed for model 'a': circular dependency between ensembles: a -> b -> a" in (
        error.message
    )


async def test_a_step_with_a_wrong_tensor_is_refused_with_the_names_there_are(
    folder, composed, refusal
):
    folder.model("wrong", config=ensemble("double").replace('key: "x"', 'key: "z"'))

    error = await refusal(composed.load("wrong", {}))

    assert "has no input 'z'; it has x" in error.message


async def test_an_ensemble_with_a_decoupled_step_is_decoupled(folder, started, config):
    decoupled = "model_transaction_policy { decoupled: true }"
    folder.model("many", config=config + decoupled, text="2")
    folder.model("outer", config=ensemble("many"))
    manager = await started()

    await manager.load("outer", {})

    found = manager.resolve("outer")
    assert found.signature.decoupled
    assert found.config.model_transaction_policy.decoupled


async def test_a_model_that_an_ensemble_still_drains_through_goes_after_it(composed, backend):
    await composed.load("six", {})
    backend.go.clear()
    reply = composed.ask("six")
    await composed.unload("six")

    unload = asyncio.ensure_future(composed.unload("triple"))
    await asyncio.sleep(0)
    backend.go.set()
    await unload

    assert (await reply).output("y").array[0] == 6


async def test_an_ensemble_that_is_loaded_while_its_model_goes_is_not_left_without_it(composed):
    await composed.load("six", {})
    await composed.unload("six")

    await asyncio.gather(composed.load("six", {}), composed.unload("triple"))

    assert composed.ready_versions("six") == [] or composed.ready_versions("triple") == [1]
