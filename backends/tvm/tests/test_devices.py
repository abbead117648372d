"""Modules on instances of another kind, and results with another number of rows, without TVM."""

from types import SimpleNamespace

import numpy as np
import pytest
from backend_tvm.backend import backend
from backend_tvm.complete import device_of
from backend_tvm.instance import TvmInstance
from backend_tvm.machine import LoadedModule

from core.config import normalise, parse_text
from core.errors import CoreError


def module(*kinds):
    inside = [SimpleNamespace(kind=each, imports=[]) for each in kinds]
    return SimpleNamespace(kind="relax.VMExecutable", imports=inside)


def loaded(*kinds, exist=True):
    """Return a loaded module with modules of these kinds inside; its devices are their names."""
    found = object.__new__(LoadedModule)
    found._model, found._module = "m", module(*kinds)
    found._read = SimpleNamespace(library="model.so")
    found._tvm = SimpleNamespace(device=lambda *name: SimpleNamespace(name=name, exist=exist))
    return found


@pytest.mark.parametrize(
    ("kinds", "kind", "number", "device"),
    [
        (["library"], "CPU", 0, ("cpu", 0)),
        (["library"], "CPU", 3, ("cpu", 0)),
        (["library", "cuda"], "GPU", 1, ("cuda", 1)),
        (["hip"], "GPU", 0, ("rocm", 0)),
    ],
)
def test_the_device_of_an_instance(kinds, kind, number, device):
    assert loaded(*kinds)._device(kind, number).name == device


@pytest.mark.parametrize(
    ("kinds", "kind", "error"),
    [
        (["library"], "GPU", "compiled for CPUs, the instance has KIND_GPU"),
        (["cuda"], "CPU", "compiled for cuda, the instance has KIND_CPU"),
    ],
)
def test_a_module_for_another_kind_is_an_error_with_both(kinds, kind, error):
    with pytest.raises(CoreError, match=f"{error}.* KIND_.PU }}"):
        loaded(*kinds)._device(kind, 0)


def test_a_device_that_is_not_there_is_an_error():
    with pytest.raises(CoreError, match="TVM finds no device cuda 2 here"):
        loaded("cuda", exist=False)._device("GPU", 2)


@pytest.mark.parametrize(
    "groups",
    [
        "",
        "instance_group { count: 2 }",
        "instance_group { kind: KIND_CPU }",
        "instance_group { kind: KIND_GPU gpus: [ 0 ] }",
        "instance_group { gpus: [ 2 ] }",
    ],
)
def test_a_completion_runs_where_the_first_instance_will(groups):
    config = parse_text(f'name: "m" {groups}', "config.pbtxt")
    device = device_of(config)

    normalise(config, backend.instances, gpus=[0, 1, 2])

    first = config.instance_group[0]
    kinds = {first.KIND_CPU: "CPU", first.KIND_GPU: "GPU"}
    assert device == (kinds[first.kind], next(iter(first.gpus), 0))


@pytest.mark.parametrize("result", [np.ones((3, 1)), np.float32(1)])
def test_results_of_another_number_of_rows_are_an_error(result):
    instance = object.__new__(TvmInstance)
    instance._batches, instance.model = True, SimpleNamespace(name="m")

    with pytest.raises(CoreError, match=r"'y' has shape .* for 2 rows: .* set max_batch_size to 0"):
        instance._output("y", result, SimpleNamespace(rows=2))
