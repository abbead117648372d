"""ClassModel: a class with `predict`, in the form of Seldon Core's Python wrapper.

class Model:
    def __init__(self, factor=1): ...        # MODEL_PARAMETERS
    def load(self): ...                      # once
    def predict(self, X, names, meta): ...   # or (X), or (X, names)
    def predict_proba(self, X): ...          # an output of that name
    def class_names(self) / tags(self) / metrics(self): ...
"""

from __future__ import annotations

import importlib
import inspect
import json
from types import ModuleType
from typing import Any

from backend_python.api.errors import TritonModelException
from backend_python.api.model_config import ModelConfig
from backend_python.api.response import InferenceResponse
from backend_python.api.sender import TRITONSERVER_RESPONSE_COMPLETE_FINAL
from backend_python.api.tensor import Tensor

from core_adapters import table, trust
from core_adapters.described import Described, describe, is_described, rank
from core_adapters.fitting import as_array, fit
from core_adapters.formats import CLASS_PARAMETER
from core_adapters.metrics import Metrics
from core_adapters.scikit import METHODS

MAIN = ("predict", "transform_input", "transform_output")  # the first existing method is used
PARAMETERS = "MODEL_PARAMETERS"
_TYPES = {"INT": int, "FLOAT": float, "DOUBLE": float, "STRING": str}


def has_class(module: ModuleType, *, own: bool = False) -> bool:
    """Return whether a module without TritonPythonModel has a class that can be served.

    own   whether to count only classes that the module itself defines
    """
    return any(
        _serves(value) and (not own or value.__module__ == module.__name__)
        for value in vars(module).values()
    )


def _serves(value: Any) -> bool:
    methods = (*MAIN, "predict_raw")
    return inspect.isclass(value) and any(_has(value, value, name) for name in methods)


def _has(owner: Any, of: type, name: str) -> bool:
    """Return whether `owner`, the class `of` or an object of it, has a method of this name.

    Methods of Seldon's base class SeldonComponent only raise, so they do not count.
    """
    home = next((each.__name__ for each in of.__mro__ if name in vars(each)), "")
    return home != "SeldonComponent" and callable(getattr(owner, name, None))


class ClassModel:
    """The model object for a module whose class is no TritonPythonModel."""

    def __init__(self, module: ModuleType, file: str):
        self._module = module
        self._file = file
        self._config: dict[str, Any] = {}
        self._model: Any = None
        self._main: Any = None  # the method for all outputs without a separate method
        self._given = 1  # number of its positional arguments: X, names, meta
        self._meta_by_name = False
        self._metrics: Metrics

    def __call__(self) -> ClassModel:
        return self

    def auto_complete_config(self, config: ModelConfig) -> ModelConfig:
        known = config.as_dict()
        if is_described(known):
            return config
        found = self._class(known)
        outputs = [Described("predict", "TYPE_FP64", [-1])]
        if callable(getattr(found, "predict_proba", None)):
            outputs.append(Described("predict_proba", "TYPE_FP64", [-1]))
        describe(config, [Described("X", "TYPE_FP64", [-1])], outputs)
        if inspect.isgeneratorfunction(getattr(found, "predict", None)):
            config.set_model_transaction_policy({"decoupled": True})
        return config

    def initialize(self, arguments: dict[str, str]) -> None:
        self._config = json.loads(arguments["model_config"])
        found = self._class(self._config)
        self._model = found(**_parameters(self._config))
        main = next((name for name in MAIN if _has(self._model, found, name)), None)
        if main is None:
            raise TritonModelException(
                f"class '{found.__name__}' of '{self._file}' has predict_raw alone, which takes "
                "messages of Seldon Core; write a predict(self, X, names, meta)"
            )
        self._main = getattr(self._model, main)
        self._given, self._meta_by_name = _arguments(self._main)
        self._metrics = Metrics(self._config["name"])
        if _has(self._model, found, "load"):
            self._model.load()

    def execute(self, requests: list[Any]) -> list[Any] | None:
        if self._config.get("model_transaction_policy", {}).get("decoupled"):
            for request in requests:
                self._stream(request)
            return None
        if len(requests) > 1 and self._given < 3 and not self._meta_by_name:
            return self._together(requests)
        return [
            self._response(
                self._compute(table.inputs_of(each), each.requested_output_names(), _meta(each))
            )
            for each in requests
        ]

    def _together(self, requests: list[Any]) -> list[InferenceResponse]:
        """Compute the rows of all requests of a batch with one call. Return a response for each request.

        Raises TritonModelException if an output does not have as many rows as the inputs.
        """
        parts = [table.inputs_of(request) for request in requests]
        counts = [table.row_count(part) for part in parts]
        asked = [request.requested_output_names() for request in requests]
        wanted = set().union(*asked)
        whole = {
            name: as_array(values)
            for name, values in self._compute(table.join(parts), wanted, {}).items()
        }
        for name, array in whole.items():
            if not array.ndim or array.shape[0] != sum(counts):
                raise TritonModelException(
                    f"output '{name}': {sum(counts)} rows of a batch were given, and the model "
                    f"answered with shape {list(array.shape)}; a model that is not to be given the rows "
                    "of several requests takes no dynamic_batching"
                )
        return [self._response(rows) for rows in table.split(whole, counts, asked)]

    def _stream(self, request: Any) -> None:
        """Send each result of `predict` if it is a generator, else its one result; then end the stream."""
        sender = request.get_response_sender()
        wanted = list(request.requested_output_names())
        features, names = self._features(table.inputs_of(request))
        answers = self._ask(features, names, _meta(request))
        for answer in answers if inspect.isgenerator(answers) else [answers]:
            if request.is_cancelled():
                break
            sender.send(self._response(self._by_name(answer, wanted)))
        sender.send(flags=TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _compute(
        self, inputs: table.Inputs, wanted: set[str], meta: dict[str, Any]
    ) -> dict[str, Any]:
        features, names = self._features(inputs)
        found, rest = {}, []
        for output in self._config["output"]:
            name = output["name"]
            method = getattr(self._model, name, None) if name in METHODS[1:] else None
            if callable(method) and method != self._main:
                if name in wanted:
                    found[name] = method(features)
            else:
                rest.append(name)
        if any(name in wanted for name in rest):
            answer = self._ask(features, names, meta)
            if inspect.isgenerator(answer):
                raise TritonModelException(
                    "predict is a generator: add to config.pbtxt "
                    "model_transaction_policy { decoupled: true }"
                )
            found.update(self._by_name(answer, rest))
        return found

    def _features(self, inputs: table.Inputs) -> tuple[Any, list[str]]:
        """Return X and names for `predict`.

        X is the array of a single input (names: []), a table if each input is one column, else the dict.
        """
        if len(inputs) == 1:
            return next(iter(inputs.values())), []
        names = list(inputs)
        try:
            columns = list(table.columns(inputs).values())
        except TritonModelException:
            return inputs, names
        import numpy as np

        numbers = all(column.dtype.kind in "biuf" for column in columns)
        whole = [column if numbers else column.astype(np.object_) for column in columns]
        return np.column_stack(whole), names

    def _ask(self, features: Any, names: list[str], meta: dict[str, Any]) -> Any:
        by_name = {"meta": meta} if self._meta_by_name else {}
        return self._main(*(features, names, meta)[: self._given], **by_name)

    def _by_name(self, answer: Any, names: list[str]) -> dict[str, Any]:
        """Return name → value of the outputs in a result of predict.

        A dict with any of `names` gives the outputs that it has. Any other result is the only output, or a
        tuple of all outputs in order. Of Seldon's ClientResponse, record the metrics and take the data.
        Raises TritonModelException for another result.
        """
        if hasattr(answer, "data") and hasattr(answer, "tags") and hasattr(answer, "metrics"):
            self._metrics.count(answer.metrics)  # Seldon's ClientResponse
            answer = answer.data
        if isinstance(answer, dict):
            if set(answer) & set(names):
                return {name: answer[name] for name in names if name in answer}
            answer = [json.dumps(answer)]
        elif isinstance(answer, (str, bytes)):
            answer = [answer]
        if len(names) == 1:
            return {names[0]: answer}
        if isinstance(answer, tuple) and len(answer) == len(names):
            return {name: answer[i] for i, name in enumerate(names)}
        raise TritonModelException(
            f"predict returned a {type(answer).__name__} for the outputs {', '.join(names)}; expected a "
            "dict with their names, or a tuple"
        )

    def _response(self, found: dict[str, Any]) -> InferenceResponse:
        parameters: dict[str, Any] = {}
        if (tags := _called(self._model, "tags")) is not None:
            parameters.update({str(key): _plain(value) for key, value in tags.items()})
        if (names := _called(self._model, "class_names")) is not None:
            parameters["names"] = json.dumps([str(name) for name in names])
        self._metrics.count(_called(self._model, "metrics") or [])
        tensors = [
            Tensor(name, fit(found[name], name, each["data_type"], rank(self._config, each)))
            for each in self._config["output"]
            if (name := each["name"]) in found
        ]
        return InferenceResponse(tensors, parameters=parameters or None)

    def _class(self, config: dict[str, Any]) -> Any:
        """Return the class that MODEL_CLASS names, or else the only class of the file that can be served.

        Of several classes, the one named Model or like the file is taken. Raises TritonModelException if
        there is no class, or no single one of them.
        """
        named = trust.parameter(config, CLASS_PARAMETER)
        module, _, name = named.rpartition(".")
        home = self._module
        stem = home.__name__.rpartition(".")[2]
        if module and module.rpartition(".")[2] != stem:
            home = importlib.import_module(module)
        if named:
            if _serves(found := getattr(home, name, None)):
                return found
            raise TritonModelException(
                f"parameter {CLASS_PARAMETER} is '{named}', but '{home.__file__}' has no class of that "
                "name with a predict"
            )
        own = [
            each
            for each in vars(home).values()
            if _serves(each) and each.__module__ == home.__name__
        ]
        preferred = [each for each in own if each.__name__ in ("Model", stem)]
        if len(own) == 1 or len(preferred) == 1:
            return (own if len(own) == 1 else preferred)[0]
        names = ", ".join(each.__name__ for each in own) or "none of its own"
        raise TritonModelException(
            f"'{self._file}' has no TritonPythonModel; of classes with a predict it has {names}; name the "
            f'one to serve: parameters {{ key: "{CLASS_PARAMETER}" value {{ string_value: "…" }} }}'
        )


def _arguments(method: Any) -> tuple[int, bool]:
    """Return how many of (X, names, meta) a method takes by position, and whether it takes meta by name."""
    parameters = inspect.signature(method).parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return 3, False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = max(1, min(3, sum(each.kind in places for each in parameters)))
    by_name = any(
        each.kind is each.VAR_KEYWORD or (each.kind is each.KEYWORD_ONLY and each.name == "meta")
        for each in parameters
    )
    return given, by_name and given < 3


def _parameters(config: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the class from the parameter MODEL_PARAMETERS; {} if it is not set.

    The parameter is a JSON object, or Seldon's list of objects with name, value and type.

    Raises TritonModelException for another form.
    """
    text = trust.parameter(config, PARAMETERS)
    try:
        given = json.loads(text) if text else {}
        if isinstance(given, list):
            return {each["name"]: _value(each) for each in given}
        if isinstance(given, dict):
            return given
    except (ValueError, TypeError, KeyError) as error:
        raise TritonModelException(f"parameter {PARAMETERS} is '{text}': {error!r}") from None
    raise TritonModelException(
        f"parameter {PARAMETERS} is '{text}', expected a JSON object, or a list of "
        '{"name": …, "value": …, "type": …}'
    )


def _value(entry: dict[str, Any]) -> Any:
    kind, value = entry["type"], entry["value"]
    if kind == "BOOL":
        return str(value).lower() in ("y", "yes", "t", "true", "on", "1")
    return _TYPES[kind](value)


def _meta(request: Any) -> dict[str, Any]:
    return {"puid": request.request_id(), "tags": json.loads(request.parameters())}


def _called(model: Any, name: str) -> Any:
    """Call an optional method of a model, and return its result; None if the class has no such method."""
    return getattr(model, name)() if _has(model, type(model), name) else None


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else json.dumps(value, default=str)
