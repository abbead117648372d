"""Serves one API of the BentoML service in source/.

request ─► arguments of the method ─► the method ─► output

Parameters of config.pbtxt: BENTOML_API (module:class.method), FIELDS (see tensor_fields.py). bentoml_store/
holds the models of the store that the service reads. compat/bentoml stands in for the package bentoml; with
the parameter USE_PACKAGE, the installed one is used. The stand-in reads pickles only if TRUSTED is true.
"""

import asyncio
import importlib
import inspect
import json
import os
import sys
import tempfile
import typing

import numpy as np
import triton_python_backend_utils as pb_utils

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "source")
sys.path.insert(0, SOURCE)
sys.path.append(HERE)

from tensor_fields import error_of, kinds_of, tensor_of, value_of  # noqa: E402


class TritonPythonModel:
    def initialize(self, args):
        os.chdir(SOURCE)  # it opens its files by relative paths
        if os.path.isdir(os.path.join(HERE, "bentoml_store")):
            os.environ["BENTOML_HOME"] = os.path.join(HERE, "bentoml_store")
        self.config = json.loads(args["model_config"])
        if "USE_PACKAGE" not in self.config["parameters"]:
            sys.path.insert(0, os.path.join(HERE, "compat"))
            trusted = self.config["parameters"].get("TRUSTED", {}).get("string_value", "")
            importlib.import_module("bentoml.models").TRUSTED = trusted.lower() == "true"
        self.kinds = kinds_of(self.config)
        self.spec = self.config["output"][0]
        self.batched = self.config["max_batch_size"] > 0
        self.loop = asyncio.new_event_loop()
        module, _, member = self.config["parameters"]["BENTOML_API"]["string_value"].partition(":")
        name, _, method = member.partition(".")
        service = getattr(importlib.import_module(module), name)
        kind = getattr(service, "inner", service)  # the class in a bentoml.Service
        self.service = kind()
        self.hooks("__bentoml_startup_hook__")
        self.method = getattr(self.service, method)
        function = inspect.unwrap(self.method)
        self.types = typing.get_type_hints(getattr(function, "__func__", function))
        self.context = {name for name in inspect.signature(self.method).parameters} & {
            "ctx",
            "context",
        }

    def finalize(self):
        self.hooks("__bentoml_shutdown_hook__")

    def hooks(self, mark):
        """Call and await the service's methods with the attribute `mark`, which decorators of bentoml set."""
        for name in dir(type(self.service)):
            method = getattr(type(self.service), name, None)
            if getattr(method, mark, False):
                self.awaited(getattr(self.service, name)())

    def execute(self, requests):
        with tempfile.TemporaryDirectory() as self.folder:
            if self.config.get("model_transaction_policy", {}).get("decoupled"):
                return [self.stream(request) for request in requests] and None
            if self.batched and len(requests) > 1:
                try:
                    return self.together(requests)
                except Exception:  # one of them may be at fault
                    pass
            return [self.respond(request) for request in requests]

    def respond(self, request):
        try:
            return self.together([request])[0]
        except Exception as error:
            return error_of(error)

    def together(self, requests):
        """Answer requests by one call of the API. Several requests come only if the model batches."""
        parts = [
            {each.name(): each.as_numpy() for each in request.inputs()} for request in requests
        ]
        counts = [len(next(iter(part.values()))) for part in parts]
        whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        answer = self.awaited(self.call(whole if len(parts) > 1 else parts[0]))
        if not self.batched:
            return [
                pb_utils.InferenceResponse(
                    [tensor_of(answer, self.spec, self.kinds[self.spec["name"]])]
                )
            ]
        if len(answer) != sum(counts):
            raise pb_utils.TritonModelException(
                f"the API answered {sum(counts)} rows of a batch with {len(answer)}"
            )
        responses, start = [], 0
        for count in counts:
            rows = answer[start : start + count]
            start += count
            tensor = tensor_of(rows, self.spec, self.kinds[self.spec["name"]], count)
            responses.append(pb_utils.InferenceResponse([tensor]))
        return responses

    def stream(self, request):
        """Send each value that the API yields as a response; after an error, that; then end the stream."""
        sender = request.get_response_sender()
        try:
            arrays = {each.name(): each.as_numpy() for each in request.inputs()}
            for item in self.items(self.call(arrays)):
                tensor = tensor_of(item, self.spec, self.kinds[self.spec["name"]])
                sender.send(pb_utils.InferenceResponse([tensor]))
        except Exception as error:
            sender.send(error_of(error))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def call(self, arrays):
        values = {}
        for name, array in arrays.items():
            kind = self.kinds[name]
            if self.batched and kind == "list" and array.ndim == 2 and array.shape[1] == 1:
                array = array[:, 0]  # a list of single values
            value = value_of(array, kind, self.folder)
            wanted = self.types.get(name)
            values[name] = (
                wanted.model_validate(value) if hasattr(wanted, "model_validate") else value
            )
        values.update(dict.fromkeys(self.context))
        return self.method(**values)

    def awaited(self, found):
        return self.loop.run_until_complete(found) if inspect.isawaitable(found) else found

    def items(self, found):
        """Return the items of a generator, also of an async one."""
        if not hasattr(found, "__anext__"):
            yield from found
            return
        while True:
            try:
                yield self.loop.run_until_complete(found.__anext__())
            except StopAsyncIteration:
                return
