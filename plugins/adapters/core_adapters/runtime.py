"""RuntimeModel: run a class that extends mlserver.MLModel, with the package mlserver.

request ─► mlserver.types.InferenceRequest ─► predict or predict_stream, on a separate event loop ─► response
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from typing import TYPE_CHECKING, Any

from backend_python.api.errors import TritonError, TritonModelException
from backend_python.api.model_config import ModelConfig
from backend_python.api.response import InferenceResponse
from backend_python.api.sender import TRITONSERVER_RESPONSE_COMPLETE_FINAL
from backend_python.api.tensor import Tensor

from core_adapters.described import describe, is_described, rank
from core_adapters.fitting import fit
from core_adapters.needed import needed
from core_adapters.table import readable

if TYPE_CHECKING:
    from core_adapters.settings import Settings


# Packages that the project MLServer publishes; error texts suggest to install only these.
_OF_MLSERVER = frozenset(
    f"mlserver_{name}"
    for name in (
        *("alibi_detect", "alibi_explain", "catboost", "huggingface", "lightgbm"),
        *("mlflow", "sklearn", "xgboost"),
    )
)
_DATATYPES = (  # by number
    "", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
    "FP16", "FP32", "FP64", "BYTES", "BF16",
)  # fmt: skip


class RuntimeModel:
    """The model object of a runtime; its coroutines run on a separate thread with an event loop."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._config: dict[str, Any] = {}
        self._ranks: dict[str, int] = {}  # of the outputs
        self._model: Any = None
        self._types: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self) -> RuntimeModel:
        return self

    def auto_complete_config(self, config: ModelConfig) -> ModelConfig:
        known = config.as_dict()
        settings = self._settings
        describe(config, settings.described("inputs", known), settings.described("outputs", known))
        if self._streams_only(self._class()[1]):
            config.set_model_transaction_policy({"decoupled": True})
        return config

    def initialize(self, arguments: dict[str, str]) -> None:
        self._config = config = json.loads(arguments["model_config"])
        if not is_described(config):
            raise TritonModelException(
                f"'{self._settings.file}' has no inputs or no outputs, and a runtime cannot tell them; "
                "write them there, or into config.pbtxt"
            )
        self._ranks = {each["name"]: rank(config, each) for each in config["output"]}
        settings, runtime = self._class()
        settings.name = config["name"]
        self._types = needed("mlserver.types", "mlserver", "")
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="mlserver", daemon=True).start()
        self._model = runtime(settings)
        self._model.ready = self._run(self._model.load())
        if not self._model.ready:
            raise TritonModelException(
                f"load of {self._settings.implementation} did not return True"
            )

    def execute(self, requests: list[Any]) -> list[Any] | None:
        if self._config.get("model_transaction_policy", {}).get("decoupled"):
            self._run(self._all(self._stream, requests))
            return None
        found: list[Any] = self._run(self._all(self._predict, requests))
        return found

    def finalize(self) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            if self._model is not None and hasattr(self._model, "unload"):
                self._run(self._model.unload())
        finally:
            loop.call_soon_threadsafe(loop.stop)

    def _class(self) -> tuple[Any, Any]:
        """Return the settings as an object of mlserver, and the runtime's class.

        Raises TritonModelException if the runtime cannot be imported. If a package of MLServer's project is
        missing, the text says how to install it.
        """
        file, implementation = self._settings.file, self._settings.implementation
        found = needed(
            "mlserver.settings", "mlserver", f"the runtime '{implementation}' of '{file}'"
        )
        settings = found.ModelSettings.parse_file(file)
        try:
            return settings, settings.implementation
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            hint = "; try: pip install " + package.replace("_", "-")
            raise TritonModelException(
                f"the runtime '{implementation}' of '{file}' needs the module '{error.name}', which is "
                f"neither in '{os.path.dirname(file)}' nor installed where the model runs"
                + (hint if package in _OF_MLSERVER else "")
            ) from error
        except ImportError as error:
            raise TritonModelException(
                f"the runtime '{implementation}' of '{file}' cannot be imported: {error}"
            ) from error

    @staticmethod
    def _streams_only(runtime: Any) -> bool:
        base = needed("mlserver", "mlserver", "").MLModel
        return runtime.predict is base.predict and runtime.predict_stream is not base.predict_stream

    def _run(self, coroutine: Any) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _all(self, work: Any, requests: list[Any]) -> list[Any]:
        return await asyncio.gather(*[work(request) for request in requests])

    async def _predict(self, request: Any) -> InferenceResponse:
        try:
            with self._context():
                return self._response(await self._model.predict(self._payload(request)))
        except Exception as error:
            return InferenceResponse([], _as_error(error))

    async def _stream(self, request: Any) -> None:
        sender, loop = request.get_response_sender(), asyncio.get_running_loop()
        last: InferenceResponse | None = None
        try:
            with self._context():
                async for each in self._model.predict_stream(_once(self._payload(request))):
                    if request.is_cancelled():
                        break
                    # `send` blocks for slow clients: keep it off the loop, which runs other requests.
                    await loop.run_in_executor(None, sender.send, self._response(each))
        except Exception as error:
            last = InferenceResponse([], _as_error(error))
        sender.send(last, TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _context(self) -> Any:
        """Return a context manager that sets the model of mlserver.log to this one."""
        return needed("mlserver.context", "mlserver", "").model_context(self._model.settings)

    def _payload(self, request: Any) -> Any:
        types = self._types
        parameters = json.loads(request.parameters())
        wanted = [name for name in self._ranks if name in request.requested_output_names()]
        chosen = [types.RequestOutput(name=name) for name in wanted]
        return types.InferenceRequest(
            id=request.request_id() or None,
            parameters=types.Parameters(**parameters) if parameters else None,
            inputs=[self._input(tensor) for tensor in request.inputs()],
            outputs=chosen if len(wanted) < len(self._ranks) else None,
        )

    def _input(self, tensor: Tensor) -> Any:
        return self._types.RequestInput(
            name=tensor.name(),
            shape=tensor.shape(),
            datatype=_DATATYPES[tensor.triton_dtype()],
            data=self._types.TensorData(root=readable(tensor.as_numpy()).ravel().tolist()),
        )

    def _response(self, response: Any) -> InferenceResponse:
        given = {each.name: each for each in response.outputs}
        tensors = [
            Tensor(each["name"], self._output(given[each["name"]], each["data_type"]))
            for each in self._config["output"]
            if each["name"] in given
        ]
        returned = response.parameters.model_dump() if response.parameters is not None else {}
        parameters = {k: v for k, v in returned.items() if isinstance(v, (bool, int, float, str))}
        return InferenceResponse(tensors, parameters=parameters or None)

    def _output(self, output: Any, data_type: str) -> Any:
        import numpy as np

        data = getattr(output.data, "root", output.data)
        datatype = getattr(output.datatype, "value", output.datatype)
        if datatype == "BYTES":
            array = np.empty(len(data), np.object_)
            array[:] = data
        else:
            array = np.array(data, datatype.lower().replace("fp", "float"))
        return fit(array.reshape(output.shape), output.name, data_type, self._ranks[output.name])


async def _once(payload: Any) -> Any:
    yield payload


def _as_error(error: Exception) -> TritonError:
    """Return the error for a client.

    For an exception with an HTTP status, 404 becomes NOT_FOUND and any other 4xx INVALID_ARG, with its text.
    Any other exception becomes INTERNAL.
    """
    from backend_python.runner import described

    status = getattr(error, "status_code", 500)
    if isinstance(status, int) and 400 <= status < 500:
        code = TritonError.NOT_FOUND if status == 404 else TritonError.INVALID_ARG
        return TritonError(str(error), code)
    return TritonError(described(error))
