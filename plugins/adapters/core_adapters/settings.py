"""MLServer's model-settings.json: runtime, file, inputs and outputs of a model."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any

from backend_python.api.errors import TritonModelException

from core_adapters import trust
from core_adapters.described import Described
from core_adapters.tabular import Predictor, Properties, TabularModel

PICKLES = ("model.joblib", "model.pickle", "model.pkl", "model.skops")
XGBOOST = ("model.bst", "model.json", "model.ubj")
LIGHTGBM = ("model.bst", "model.txt")

# These runtimes need only the library, not the package mlserver.
RUNTIMES = {
    "mlserver_sklearn.SKLearnModel": ("scikit", PICKLES),
    "mlserver_xgboost.XGBoostModel": ("xgboost", XGBOOST),
    "mlserver_lightgbm.LightGBMModel": ("lightgbm", LIGHTGBM),
}


class Settings:
    """The content of a model-settings.json. Raises TritonModelException if it is invalid."""

    def __init__(self, file: str):
        self.file = file
        try:
            with open(file, encoding="utf-8") as stream:
                self.content = json.load(stream)
        except ValueError as error:
            raise TritonModelException(f"'{file}' is no JSON: {error}") from None
        if not isinstance(self.content, dict):
            raise TritonModelException(f"'{file}' must hold a JSON object")
        self.implementation = str(self.content.get("implementation") or "")
        if not self.implementation:
            raise TritonModelException(
                f"'{file}' names no implementation, such as \"mlserver_sklearn.SKLearnModel\""
            )

    def model(self) -> Any:
        """Return the model object: a TabularModel for RUNTIMES, else a RuntimeModel."""
        package, _, name = self.implementation.rpartition(".")
        runtime = RUNTIMES.get(f"{package.partition('.')[0]}.{name}")
        if runtime is None:
            from core_adapters.runtime import RuntimeModel

            return RuntimeModel(self)
        return TabularModel(partial(self._open, kind=runtime[0], names=runtime[1]))

    def described(self, kind: str, config: Properties) -> list[Described]:
        """Return the file's `inputs` or `outputs` (`kind` says which), without the dimension of the rows.

        Raises TritonModelException if they are invalid.
        """
        try:
            return [
                Described(
                    str(each["name"]),
                    "TYPE_STRING" if each["datatype"] == "BYTES" else f"TYPE_{each['datatype']}",
                    [int(size) for size in each["shape"][1:]]
                    or [1] * (config["max_batch_size"] > 0),
                )
                for each in self.content.get(kind) or []
            ]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise TritonModelException(
                f"'{self.file}': {kind} is {self.content[kind]!r}, expected a list of objects with name, "
                "datatype (such as FP32 or BYTES) and shape"
            ) from None

    def uri(self, names: tuple[str, ...]) -> str:
        """Return the model's file.

        It is the file that parameters.uri names. If that names a folder, it is the first of `names` there; if
        it is not set, the first of `names` beside the settings. Raises TritonModelException if there is none.
        """
        folder = os.path.dirname(self.file)
        given = str(self._parameters.get("uri") or "")
        path = os.path.normpath(os.path.join(folder, given)) if given else folder
        if not os.path.isdir(path):
            if os.path.exists(path):
                return path
            raise TritonModelException(
                f"'{self.file}': the uri '{given}' is not there: no '{path}'"
            )
        for name in names:
            if os.path.isfile(os.path.join(path, name)):
                return os.path.join(path, name)
        raise TritonModelException(
            f"'{self.file}': '{path}' has none of {', '.join(names)}, and parameters.uri names no file"
        )

    def _open(self, config: Properties, kind: str, names: tuple[str, ...]) -> Predictor:
        from core_adapters import boosters, scikit

        file = self.uri(names)
        if kind == "scikit":
            found: Any = scikit.open_file(self._with_trust(config), file)
        elif kind == "xgboost":
            found = boosters.open_xgboost(config, file)
        else:
            found = boosters.open_lightgbm(config, file)
        return _Described(self, found)

    @property
    def _parameters(self) -> dict[str, Any]:
        return self.content.get("parameters") or {}

    def _with_trust(self, config: Properties) -> Properties:
        """Return the configuration, with parameters.extra.trusted as trust.PARAMETER.

        A repository of MLServer has no config.pbtxt that could trust the file. If config.pbtxt has the
        parameter, or the settings do not, the configuration stays unchanged.
        """
        trusted = (self._parameters.get("extra") or {}).get("trusted")
        if trusted is None or trust.parameter(config, trust.PARAMETER):
            return config
        text = ",".join(trusted) if isinstance(trusted, list) else str(trusted).lower()
        parameters = {**config.get("parameters", {}), trust.PARAMETER: {"string_value": text}}
        return {**config, "parameters": parameters}


class _Described(Predictor):
    """A predictor with the inputs and outputs of the settings; if the settings have none, with its own.

    A single input of numbers of its own is then called `predict`, as MLServer's clients send it.
    """

    def __init__(self, settings: Settings, predictor: Predictor):
        self._settings = settings
        self._predictor = predictor
        self.check = predictor.check  # type: ignore[method-assign]
        self.compute = predictor.compute  # type: ignore[method-assign]

    def inputs(self, config: Properties) -> list[Described]:
        if described := self._settings.described("inputs", config):
            return described
        found = self._predictor.inputs(config)
        if len(found) != 1 or found[0].data_type == "TYPE_STRING":
            return found
        return [Described("predict", "TYPE_FP32", found[0].dims)]  # what MLServer's clients send

    def outputs(self, config: Properties) -> list[Described]:
        return self._settings.described("outputs", config) or self._predictor.outputs(config)
