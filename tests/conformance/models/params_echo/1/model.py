import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Returns the content of the request and of the model's arguments as JSON."""

    def initialize(self, args):
        self.args = {key: args[key] for key in args if key != "model_config"}
        config = json.loads(args["model_config"])
        self.parameters = {
            key: value["string_value"] for key, value in config["parameters"].items()
        }

    def execute(self, requests):
        responses = []
        for request in requests:
            text = json.dumps(
                {
                    "args": self.args,
                    "config_parameters": self.parameters,
                    "parameters": json.loads(request.parameters()),
                    "request_id": request.request_id(),
                    "correlation_id": request.correlation_id(),
                    "flags": request.flags(),
                    "timeout": request.timeout(),
                    "inputs": [tensor.name() for tensor in request.inputs()],
                    "outputs": sorted(request.requested_output_names()),
                }
            )
            batch = request.inputs()[0].as_numpy().shape[0]
            answer = np.full((batch, 1), text.encode(), dtype=np.object_)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", answer)]))
        return responses
