"""FunctionModel: a module whose typed function is the model.

    def predict(text: str, limit: int = 10) -> list[float]: ...

Each parameter is an input; one with a default value is optional. The result is the output `y`, or several
outputs. The function is called once for each request.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any, Callable, get_type_hints

from backend_python.api.errors import TritonError, TritonModelException
from backend_python.api.model_config import ModelConfig
from backend_python.api.response import InferenceResponse
from backend_python.api.sender import TRITONSERVER_RESPONSE_COMPLETE_FINAL
from backend_python.api.tensor import Tensor

from core_adapters import table, trust, typed
from core_adapters.described import is_described, rank
from core_adapters.fitting import fit
from core_adapters.formats import CLASS_PARAMETER, FUNCTION_PARAMETER
from core_adapters.seldon import ClassModel

MAIN = "predict"


def has_function(module: ModuleType) -> bool:
    """Return whether a module without TritonPythonModel has a function that can be served."""
    return bool(_functions(module))


def _functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """Return name → public function that a module defines, without `main`, the program of a script."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
        and name != "main"
    }


class FunctionModel:
    """The model object for a module with functions, one of which is called for each request.

    If the parameter MODEL_CLASS is set, a ClassModel of the module does the work instead.
    """

    def __init__(self, module: ModuleType, file: str):
        self._module = module
        self._file = file
        self._config: dict[str, Any] = {}
        self._function: Callable[..., Any]
        self._read: dict[str, Callable[[Any], Any]] = {}  # parameter → its value from an array
        self._decoupled = False

    def __call__(self) -> FunctionModel:
        return self

    def auto_complete_config(self, config: ModelConfig) -> ModelConfig:
        known = config.as_dict()
        if (other := self._class(known)) is not None:
            return other.auto_complete_config(config)
        function = self._chosen(known)
        if inspect.isgeneratorfunction(function):
            config.set_model_transaction_policy({"decoupled": True})
        if is_described(known):
            return config
        inputs, outputs = self._described(function)
        for each in inputs if not known["input"] else ():
            config.add_input(each)
        for each in outputs if not known["output"] else ():
            config.add_output(each)
        return config

    def initialize(self, arguments: dict[str, str]) -> None:
        self._config = json.loads(arguments["model_config"])
        if (other := self._class(self._config)) is not None:
            other.initialize(arguments)
            self.execute = other.execute  # type: ignore[method-assign]
            return
        self._function = self._chosen(self._config)
        self._decoupled = self._config.get("model_transaction_policy", {}).get("decoupled", False)
        if inspect.isgeneratorfunction(self._function) and not self._decoupled:
            raise TritonModelException(
                f"function '{self._function.__name__}' is a generator: add to config.pbtxt "
                "model_transaction_policy { decoupled: true }"
            )
        if inspect.isasyncgenfunction(self._function):
            raise TritonModelException(
                f"function '{self._function.__name__}' of '{self._file}' is an async generator; write a "
                "generator without async"
            )
        parameters = inspect.signature(self._function).parameters
        open_ended = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        for name in [each["name"] for each in self._config["input"]]:
            if name not in parameters and not open_ended:
                raise TritonModelException(
                    f"input '{name}' is no parameter of function '{self._function.__name__}' of "
                    f"'{self._file}'; it has {', '.join(parameters) or 'none'}"
                )
        hints = self._hints(self._function)
        self._read = {
            name: typed.value_of(hint).read for name, hint in hints.items() if name in parameters
        }

    def execute(self, requests: list[Any]) -> list[InferenceResponse] | None:
        if self._decoupled:
            for request in requests:
                self._stream(request)
            return None
        if inspect.iscoroutinefunction(self._function):
            return asyncio.run(self._together(requests))
        return [self._answer(partial(self._called, each)) for each in requests]

    async def _together(self, requests: list[Any]) -> list[InferenceResponse]:
        calls = [self._called(each) for each in requests]
        results = await asyncio.gather(*calls, return_exceptions=True)
        return [self._answer(partial(_raised, each)) for each in results]

    def _called(self, request: Any) -> Any:
        """Call the function with the inputs of a request. Return its result: a coroutine if it is async."""
        inputs = table.inputs_of(request).items()
        values = {
            name: self._read[name](array) if name in self._read else array for name, array in inputs
        }
        return self._function(**values)

    def _answer(self, call: Callable[[], Any]) -> InferenceResponse:
        """Return the response with the result of `call`, or with its error."""
        try:
            return self._response(call())
        except Exception as error:
            return _failed(error)

    def _stream(self, request: Any) -> None:
        """Send each result of a generator, or the one result of a function, as a response; then the end.

        An error of the function is sent as the last response. A cancelled request gets no further results.
        """
        sender = request.get_response_sender()
        results: Iterator[Any] = iter(())
        try:
            called = self._called(request)
            results = called if inspect.isgenerator(called) else iter([called])
            for result in results:
                if request.is_cancelled():
                    break
                sender.send(self._response(result))
        except Exception as error:
            sender.send(_failed(error))
        finally:
            if inspect.isgenerator(results):
                results.close()
        sender.send(flags=TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _response(self, result: Any) -> InferenceResponse:
        outputs = self._config["output"]
        values = typed.by_name(result, [each["name"] for each in outputs])
        return InferenceResponse(
            [
                Tensor(
                    each["name"],
                    fit(
                        typed.array_of(values[each["name"]], each["data_type"]),
                        each["name"],
                        each["data_type"],
                        rank(self._config, each),
                    ),
                )
                for each in outputs
            ]
        )

    def _chosen(self, config: dict[str, Any]) -> Callable[..., Any]:
        """Return the function that MODEL_FUNCTION names, else `predict`, else the module's only function.

        Raises TritonModelException if there is no function of that name, or no way to choose one.
        """
        functions = _functions(self._module)
        named = trust.parameter(config, FUNCTION_PARAMETER)
        if named and named not in functions:
            raise TritonModelException(
                f"parameter {FUNCTION_PARAMETER} is '{named}', but '{self._file}' defines "
                f"{', '.join(functions) or 'no function'}"
            )
        name = named or (MAIN if MAIN in functions else "")
        if not name and len(functions) > 1:
            raise TritonModelException(
                f"'{self._file}' defines several functions: {', '.join(functions)}; call one {MAIN}, give "
                f"the others names that begin with _, or name the one to serve in config.pbtxt: parameters "
                f'{{ key: "{FUNCTION_PARAMETER}" value {{ string_value: "…" }} }}'
            )
        return functions[name or next(iter(functions))]

    def _class(self, config: dict[str, Any]) -> ClassModel | None:
        """Return a ClassModel of this module if the parameter MODEL_CLASS is set, else None."""
        named = trust.parameter(config, CLASS_PARAMETER)
        return ClassModel(self._module, self._file) if named else None

    def _hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return name → type of the parameters that have one, with "return" for the result if it has one.

        Raises TritonModelException if a type cannot be evaluated.
        """
        try:
            found = get_type_hints(function, include_extras=True)
        except Exception as error:  # a type may be any expression
            python = ".".join(map(str, sys.version_info[:2]))
            raise TritonModelException(
                f"the types of function '{function.__name__}' of '{self._file}' cannot be read with Python "
                f"{python}: {type(error).__name__}: {error}"
            ) from error
        return found

    def _described(
        self, function: Callable[..., Any]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the inputs and outputs, as entries of config.pbtxt, that the function's types describe.

        Raises TritonModelException if a parameter or the result has no type.
        """
        hints = self._hints(function)
        parameters = inspect.signature(function).parameters
        untyped = [f"parameter '{name}'" for name in parameters if name not in hints]
        untyped += [] if "return" in hints else ["the result"]
        if untyped:
            raise TritonModelException(
                f"function '{function.__name__}' of '{self._file}' has no type for {', '.join(untyped)}; "
                f"write types, such as `def {function.__name__}(text: str, limit: int = 3) -> list[float]`, "
                "or write inputs and outputs into config.pbtxt (for a file without one: `core init`, then "
                "edit)"
            )
        inputs = [
            {
                **_entry(name, typed.value_of(hints[name])),
                "optional": each.default is not each.empty,
            }
            for name, each in parameters.items()
        ]
        outputs = typed.outputs_of(hints["return"]).items()
        return inputs, [_entry(name, value) for name, value in outputs]


def _entry(name: str, value: typed.Value) -> dict[str, Any]:
    return {"name": name, "data_type": value.data_type, "dims": value.dims}


def _failed(error: Exception) -> InferenceResponse:
    from backend_python.runner import described

    return InferenceResponse([], TritonError(described(error)))


def _raised(result: Any) -> Any:
    """Return a result, or raise it if it is an exception."""
    if isinstance(result, BaseException):
        raise result
    return result
