"""`complete` describes a model whose configuration says nothing, or only a part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from core import dtypes
from core.config import ModelConfig
from core.errors import CoreError
from core_testing.example import Arrays, Example
from core_testing.kit import Kit, Serve
from core_testing.served import Served

TENSORS = ("input", "output")


class Completion(Kit):
    def test_a_model_without_a_configuration_is_described_by_its_files(
        self, serve: Serve, example: Example
    ) -> None:
        config = _loaded(serve, example, (*TENSORS, "max_batch_size")).config()

        _describes(config, "input", example.inputs)
        _describes(config, "output", example.answer)

    def test_a_model_without_a_configuration_answers(self, serve: Serve, example: Example) -> None:
        served = _loaded(serve, example, (*TENSORS, "max_batch_size"))

        example.check(served.answer(example.inputs))

    def test_complete_adds_only_what_a_configuration_leaves_out(
        self, serve: Serve, example: Example
    ) -> None:
        for left_out in TENSORS:
            served = _loaded(serve, example, (left_out,))

            example.check(served.answer(example.inputs))


def _loaded(serve: Serve, example: Example, left_out: Sequence[str]) -> Served:
    """Return a server with the example, loaded with a configuration that lacks the fields `left_out`.

    Skips the test if the backend has no `complete` or the example has described=False. Fails the test if
    the model does not load.
    """
    if example.backend.complete is None:
        pytest.skip("the backend has no complete")
    if not example.described:
        pytest.skip("the example says described=False: its files do not say enough for complete")
    served = serve(example, load=False, left_out=left_out)
    try:
        served.load()
    except CoreError as error:
        pytest.fail(
            f"the model does not load if config.pbtxt has no {' and no '.join(left_out)}: "
            f"{error.message.rstrip()}\ncomplete must write what its files say. If they do not say enough, "
            "give the example described=False"
        )
    return served


def _describes(config: ModelConfig, kind: str, arrays: Arrays) -> None:
    """Assert that a completed configuration has a tensor of the right datatype for each array.

    kind   "input" or "output"; dims are compared for inputs only
    """
    found = {each.name: each for each in getattr(config, kind)}
    missing = sorted(set(arrays) - set(found))
    assert not missing, (
        f"complete wrote the {kind}s {sorted(found)}, the example also has {missing}"
    )
    for name, array in arrays.items():
        expected = dtypes.of_numpy(np.asarray(array).dtype)
        written = dtypes.BY_NUMBER[found[name].data_type]
        same = written is expected or {written, expected} == {dtypes.UINT16, dtypes.BF16}
        assert same, (
            f"complete wrote {kind} '{name}' as {written}, the example's array is {expected}"
        )
        if kind == "output":
            continue  # core does not compare their shapes either
        dims = [*([-1] if config.max_batch_size else []), *found[name].dims]
        fits = len(dims) == array.ndim and all(
            dim in (-1, size) for dim, size in zip(dims, array.shape, strict=True)
        )
        assert fits, (
            f"complete wrote input '{name}' with dims {list(found[name].dims)} and max_batch_size "
            f"{config.max_batch_size}, the example's array has shape {list(array.shape)}"
        )
