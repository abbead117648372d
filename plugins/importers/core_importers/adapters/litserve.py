"""Serves the LitAPI in source/.

request ─► decode_request ─► batch ─► predict ─► unbatch ─► encode_response ─► response

Parameters of config.pbtxt: LITAPI (module:class), LITAPI_ARGUMENTS of its constructor, LITAPI_SETTINGS
(max_batch_size, stream, enable_async), FIELDS (see tensor_fields.py). compat/litserve stands in for the
package litserve; with the parameter USE_PACKAGE, the installed one is used.
"""

import asyncio
import importlib
import inspect
import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb_utils

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "source")
sys.path.insert(0, SOURCE)
sys.path.append(HERE)

from tensor_fields import error_of, kinds_of, plain, tensor_of, text_of, value_of  # noqa: E402


class TritonPythonModel:
    def initialize(self, args):
        os.chdir(SOURCE)  # it opens its files by relative paths
        self.config = json.loads(args["model_config"])
        if "USE_PACKAGE" not in self.config["parameters"]:
            sys.path.insert(0, os.path.join(HERE, "compat"))
        self.kinds = kinds_of(self.config)
        self.batched = self.config["max_batch_size"] > 0
        module, _, name = self.parameter("LITAPI").partition(":")
        arguments = json.loads(self.parameter("LITAPI_ARGUMENTS"))
        settings = json.loads(self.parameter("LITAPI_SETTINGS"))
        kind = getattr(importlib.import_module(module), name)
        self.api = kind(*arguments["args"], **arguments["kwargs"])
        self.api.max_batch_size = max(settings["max_batch_size"], 1)
        self.api.stream = self.stream = settings["stream"]
        self.api.enable_async = settings["enable_async"]
        self.api.pre_setup()
        gpu = args["model_instance_kind"] == "GPU"
        device = f"cuda:{args['model_instance_device_id']}" if gpu else "cpu"
        self.api.setup(device)
        self.api.device = device
        self.loop = asyncio.new_event_loop()

    def parameter(self, name):
        return self.config["parameters"][name]["string_value"]

    def execute(self, requests):
        if self.stream:
            return self.stream_all(requests)
        if not self.batched:
            return [self.respond(request) for request in requests]
        try:
            return self.together(requests)
        except Exception:
            if len(requests) == 1:
                raise
        return [self.respond(request) for request in requests]  # one of them may be at fault

    def respond(self, request):
        try:
            return self.together([request])[0]
        except Exception as error:
            return error_of(error)

    def together(self, requests):
        """Answer requests, of which each row is a request of LitServe.

        `predict` is called once for all rows, or once for each row if max_batch_size is 1.
        """
        rows, counts, contexts = self.rows(requests)
        inputs = [self.call(self.api.decode_request, row, c) for row, c in zip(rows, contexts)]
        if self.api.max_batch_size == 1:
            answers = [self.call(self.api.predict, each, c) for each, c in zip(inputs, contexts)]
        else:
            answers = self.call(self.api.predict, self.api.batch(inputs), contexts)
            answers = self.api.unbatch(answers)
            if len(answers) != len(rows):
                raise pb_utils.TritonModelException(
                    f"predict gave {len(answers)} outputs for {len(rows)} requests"
                )
        encoded = [self.call(self.api.encode_response, a, c) for a, c in zip(answers, contexts)]
        responses, start = [], 0
        for count in counts:
            responses.append(
                pb_utils.InferenceResponse(self.outputs(encoded[start : start + count]))
            )
            start += count
        return responses

    def stream_all(self, requests):
        """Send each item that encode_response yields to the request of its row; then end all streams.

        An error is sent to every request.
        """
        senders = [request.get_response_sender() for request in requests]
        try:
            rows, counts, contexts = self.rows(requests)
            senders_of_rows = [s for s, count in zip(senders, counts) for _ in range(count)]
            inputs = [self.call(self.api.decode_request, row, c) for row, c in zip(rows, contexts)]
            if self.api.max_batch_size == 1:
                for each, context, sender in zip(inputs, contexts, senders_of_rows):
                    found = self.call(self.api.predict, each, context)
                    for item in self.items(self.call(self.api.encode_response, found, context)):
                        sender.send(self.part(item))
            else:
                found = self.call(self.api.predict, self.api.batch(inputs), contexts)
                found = self.call(self.api.encode_response, self.api.unbatch(found), contexts)
                for items in self.items(found):
                    for item, sender in zip(items, senders_of_rows):
                        sender.send(self.part(item))
        except Exception as error:
            for sender in senders:
                sender.send(error_of(error))
        for sender in senders:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def rows(self, requests):
        """Return the values of each row for decode_request, the rows of each request, and their contexts."""
        rows, counts = [], []
        for request in requests:
            arrays = {each.name(): each.as_numpy() for each in request.inputs()}
            count = len(next(iter(arrays.values()))) if self.batched else 1
            counts.append(count)
            for i in range(count):
                row = {
                    name: value_of(array[i] if self.batched else array, self.kinds[name])
                    for name, array in arrays.items()
                }
                rows.append(row["request"] if list(row) == ["request"] else row)
        annotated = list(inspect.signature(self.api.decode_request).parameters.values())[:1]
        kind = annotated[0].annotation if annotated else None
        if hasattr(kind, "model_validate"):  # a model of pydantic
            rows = [kind.model_validate(row) for row in rows]
        return rows, counts, [{} for _ in rows]

    def outputs(self, encoded):
        """Return the output tensors of one request. `encoded` has one encoded response for each row."""
        found = []
        for spec in self.config["output"]:
            name, kind = spec["name"], self.kinds[spec["name"]]
            values = [getattr(each, "body", plain(each)) for each in encoded]
            values = [
                v[name] if isinstance(v, dict) and name in v and kind != "json" else v
                for v in values
            ]
            if self.batched:
                found.append(tensor_of(values, spec, kind, len(values)))
            else:
                found.append(tensor_of(values[0], spec, kind))
        return found

    def part(self, item):
        """Return one response of a stream: text as it is, anything else as a line of JSON."""
        item = plain(item)
        is_text = isinstance(item, (str, bytes))
        texts = np.array([item if is_text else text_of(item, "json") + b"\n"], np.object_)
        texts = texts.reshape(1, 1) if self.batched else texts
        name = self.config["output"][0]["name"]
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, texts)])

    def call(self, method, value, context):
        """Call a method, with the context if it takes one; await its result."""
        more = {"context": context} if "context" in inspect.signature(method).parameters else {}
        found = method(value, **more)
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
