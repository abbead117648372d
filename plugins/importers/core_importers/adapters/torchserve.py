"""Serves an archive of TorchServe, which is in source/, with its own handler.

request ─► rows {"data": …, "body": …} ─► handler.handle(rows, context) ─► one element of `output` for each

Parameters of config.pbtxt: TORCHSERVE_HANDLER, CONTENT_TYPE of the requests (application/json, text/plain;
else bytes), SERVICE_ENVELOPE (body). A request may have a parameter content_type of its own. Each input is a
field of the rows; further inputs may be added to config.pbtxt. compat/ts stands in for the package
torchserve; with the parameter USE_PACKAGE, the installed one is used.
"""

import importlib
import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb_utils

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "source")
sys.path.insert(0, SOURCE)


class TritonPythonModel:
    def initialize(self, args):
        os.chdir(SOURCE)  # handlers open their files by relative paths
        self.config = json.loads(args["model_config"])
        parameters = self.config.get("parameters", {})
        self.parameters = {key: value["string_value"] for key, value in parameters.items()}
        if "USE_PACKAGE" not in self.parameters:
            sys.path.insert(0, os.path.join(HERE, "compat"))
        from ts.context import Context

        self.batched = self.config["max_batch_size"] > 0
        self.decoupled = self.config.get("model_transaction_policy", {}).get("decoupled", False)
        gpu = (
            int(args["model_instance_device_id"]) if args["model_instance_kind"] == "GPU" else None
        )
        manifest = read_json(os.path.join(SOURCE, "MAR-INF", "MANIFEST.json"))
        rows = max(1, self.config["max_batch_size"])
        self.context = Context(args["model_name"], SOURCE, manifest, rows, gpu, "0.12.0", True)
        self.context.metrics = NoMetrics()
        settings = os.path.join(HERE, "model_config.json")
        self.context.model_yaml_config = read_json(settings) if os.path.exists(settings) else {}
        self.handle = self.load_handler(self.parameters["TORCHSERVE_HANDLER"])

    def load_handler(self, name):
        """Return handle(rows, context): a file's function, or the method of the file's only class.

        The function is called once without rows; an object of the class is initialized.
        """
        for place in ("ts.handler_utils.utils", "ts.protocol.otf_message_handler"):
            importlib.import_module(place).send_intermediate_predict_response = self.send_part
        file, _, function = name.partition(":")
        file = os.path.basename(file)
        file = file[: -len(".py")] if file.endswith(".py") else file
        own = os.path.exists(os.path.join(SOURCE, file + ".py"))
        module = importlib.import_module(file if own else f"ts.torch_handler.{file}")
        handle = getattr(module, function or "handle", None)
        if handle is not None:
            handle(None, self.context)
            return handle
        classes = [
            each
            for each in vars(module).values()
            if isinstance(each, type) and each.__module__ == module.__name__
        ]
        if len(classes) != 1:
            raise pb_utils.TritonModelException(
                f"'{file}.py' has {len(classes)} classes and no function handle; TorchServe expects one class"
            )
        handler = classes[0]()
        handler.initialize(self.context)
        return handler.handle

    def execute(self, requests):
        from ts.context import RequestProcessor

        rows, headers, counts = [], [], []
        for request in requests:
            parameters = json.loads(request.parameters())
            found = self.rows(request, parameters.get("content_type"))
            rows += found
            counts.append(len(found))
            texts = {key: str(value) for key, value in parameters.items()}
            headers += [RequestProcessor(dict(texts)) for _ in found]
        self.context.request_ids = {i: str(i) for i in range(len(rows))}
        self.context.request_processor = headers
        if self.parameters.get("SERVICE_ENVELOPE") == "body":
            rows = [row["data"] for row in rows]
        self.senders = [each.get_response_sender() for each in requests] if self.decoupled else []
        self.counts = counts
        try:
            answers = self.handle(rows, self.context)
        except Exception as error:
            if not hasattr(error, "error_code"):
                raise
            raise pb_utils.TritonModelException(str(error)) from error  # a PredictionException
        if not isinstance(answers, (list, tuple)) or len(answers) != len(rows):
            raise pb_utils.TritonModelException(
                f"the handler answered {len(rows)} requests with {describe(answers)}, expected a list of as "
                "many elements"
            )
        responses = self.responses(answers)
        if not self.decoupled:
            return responses
        for sender, response in zip(self.senders, responses):
            sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

    def send_part(self, answers, ids, message, code, context=None):
        """Send each request one part of its answers; handlers that stream call this function.

        answers   the parts for all rows; the other arguments are those of TorchServe, and are not used
        """
        for sender, response in zip(self.senders, self.responses(answers)):
            sender.send(response)

    def rows(self, request, content_type):
        """Return the rows of a request: one, or those of its batch dimension."""
        content_type = content_type or self.parameters.get("CONTENT_TYPE", "")
        columns = {}
        for tensor in request.inputs():
            array = tensor.as_numpy()
            parts = array if self.batched else array[np.newaxis]
            columns[tensor.name()] = [value_of(part, content_type) for part in parts]
        first = next(iter(columns.values()))
        rows = [{name: column[i] for name, column in columns.items()} for i in range(len(first))]
        for row in rows:
            if "data" in row:
                row.setdefault("body", row["data"])
        return rows

    def responses(self, answers):
        """Return one response for each request, as TorchServe writes answers: bytes, text, or JSON."""
        found, start = [], 0
        name = self.config["output"][0]["name"]
        for count in self.counts:
            texts = np.array([encoded(each) for each in answers[start : start + count]], np.object_)
            start += count
            texts = texts.reshape(count, 1) if self.batched else texts
            found.append(pb_utils.InferenceResponse([pb_utils.Tensor(name, texts)]))
        return found


class NoMetrics:
    """Takes the metrics of handlers, and drops them."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: NoMetrics()


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def value_of(array, content_type):
    """Return a tensor as TorchServe gives it to handlers: numbers as nested lists, texts as one or a list.

    content_type   decides what a text becomes: JSON's value, str, or a bytearray
    """
    if array.dtype != np.object_:
        return array.tolist()
    values = [decoded(each, content_type) for each in array.reshape(-1)]
    return values[0] if len(values) == 1 else values


def decoded(element, content_type):
    element = element.encode() if isinstance(element, str) else element
    if content_type == "application/json":
        return json.loads(element)
    return element.decode() if content_type.startswith("text") else bytearray(element)


def encoded(answer):
    if isinstance(answer, (bytes, bytearray)):
        return bytes(answer)
    if isinstance(answer, str):
        return answer.encode()
    try:
        return json.dumps(answer, indent=2).encode()
    except TypeError as error:
        raise pb_utils.TritonModelException(f"the handler's answer is no JSON: {error}") from error


def describe(answers):
    many = f" of {len(answers)}" if isinstance(answers, (list, tuple)) else ""
    return f"a {type(answers).__name__}{many}"
