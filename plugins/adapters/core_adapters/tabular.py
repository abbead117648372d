"""TabularModel: a TritonPythonModel for models with rows and features.

requests ─► join ─► predict once ─► split ─► responses
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from backend_python.api.errors import TritonError, TritonModelException
from backend_python.api.model_config import ModelConfig
from backend_python.api.response import InferenceResponse
from backend_python.api.tensor import Tensor

from core_adapters import table
from core_adapters.described import Described, describe, is_described, rank
from core_adapters.fitting import Array, as_array, fit

Properties = dict[str, Any]


class Predictor:
    """Base class: the model that an adapter opens from a file."""

    def inputs(self, config: Properties) -> list[Described]:
        """Return the inputs for a configuration that has none."""
        raise NotImplementedError

    def outputs(self, config: Properties) -> list[Described]:
        """Return the outputs for a configuration that has none."""
        raise NotImplementedError

    def check(self, outputs: list[str]) -> None:
        """Raise TritonModelException for an output that the model does not have. Here: allow every output."""

    def compute(self, inputs: table.Inputs, wanted: list[str]) -> dict[str, Any]:
        """Return name → rows of the wanted outputs, computed from all rows of `inputs`."""
        raise NotImplementedError


class TabularModel:
    """A model object that computes with a Predictor. `open` returns the Predictor for a configuration."""

    def __init__(self, open: Callable[[Properties], Predictor]):
        self._open = open
        self._predictor: Predictor
        self._outputs: dict[str, tuple[str, int]] = {}  # data type and rank

    def __call__(self) -> TabularModel:
        return self

    def auto_complete_config(self, config: ModelConfig) -> ModelConfig:
        known = config.as_dict()
        if not is_described(known):
            predictor = self._open(known)
            inputs = [] if known["input"] else predictor.inputs(known)
            outputs = [] if known["output"] else predictor.outputs(known)
            describe(config, inputs, outputs)
        return config

    def initialize(self, arguments: dict[str, str]) -> None:
        config = json.loads(arguments["model_config"])
        if not is_described(config):
            raise TritonModelException(
                f"model '{config['name']}': the configuration has no inputs or no outputs; write them "
                "into config.pbtxt, or serve without --disable-auto-complete-config"
            )
        self._outputs = {
            each["name"]: (each["data_type"], rank(config, each)) for each in config["output"]
        }
        self._predictor = self._open(config)
        self._predictor.check(list(self._outputs))

    def execute(self, requests: list[Any]) -> list[InferenceResponse]:
        try:
            return self._together(requests)
        except Exception:
            if len(requests) == 1:
                raise
        # One request may have caused the error: the others get their responses.
        return [self._alone(request) for request in requests]

    def _alone(self, request: Any) -> InferenceResponse:
        try:
            return self._together([request])[0]
        except Exception as error:
            from backend_python.runner import described

            return InferenceResponse([], TritonError(described(error)))

    def _together(self, requests: list[Any]) -> list[InferenceResponse]:
        parts = [table.as_rows(table.inputs_of(request)) for request in requests]
        counts = [table.row_count(part) for part in parts]
        asked = [request.requested_output_names() for request in requests]
        wanted = [name for name in self._outputs if any(name in names for names in asked)]
        whole = self._compute(table.join(parts), wanted, sum(counts))
        return [self._response(rows) for rows in table.split(whole, counts, asked)]

    def _compute(self, inputs: table.Inputs, wanted: list[str], rows: int) -> dict[str, Array]:
        found = self._predictor.compute(inputs, wanted)
        whole = {name: as_array(values) for name, values in found.items()}
        for name, array in whole.items():
            if not array.ndim or array.shape[0] != rows:
                raise TritonModelException(
                    f"output '{name}': the model gives shape {list(array.shape)} for {rows} rows"
                )
        return whole

    def _response(self, rows: dict[str, Array]) -> InferenceResponse:
        return InferenceResponse(
            [Tensor(name, fit(array, name, *self._outputs[name])) for name, array in rows.items()]
        )
