"""Find the outputs of a function that the file does not describe: one run with zeros shows them.

reading ─► machine ─► [results] ─► complete, backend.

A file has the types of results whose shapes have variables. All other results have fixed shapes.
"""

from __future__ import annotations

import numpy as np

from backend_tvm.machine import LoadedModule, text_of
from backend_tvm.reading import names_of
from backend_tvm.settings import Settings
from backend_tvm.tensors import Port, Ports, named
from core.errors import invalid


def with_outputs(
    ports: Ports, loaded: LoadedModule, kind: str, number: int, settings: Settings, model: str
) -> Ports:
    """Return the ports with their outputs; variables have the size 1 in the run.

    Raises CoreError(INVALID) if the run fails.
    """
    arrays = [_zeros(model, each) for each in ports.inputs.values()]
    machine = loaded.machine(kind, number, settings)
    try:
        results = machine.run(arrays)
    except Exception as error:
        raise invalid(
            f"model '{model}': the file has no types of outputs, and a run with zeros, which would show "
            f"them, fails: {text_of(error)}; give an input a variable in its shape, and the output the same"
        ) from error
    numbered = [f"output{place}" for place in range(len(results))]
    names = names_of(numbered, settings.outputs, "outputs", model)
    types = [(str(each.dtype), tuple(map(str, each.shape))) for each in results]
    return Ports(ports.inputs, named(names, types))


def _zeros(model: str, port: Port) -> np.ndarray:
    dtype = port.dtype_for(model)
    return np.zeros([1 if each < 0 else each for each in port.dims], dtype.numpy)
