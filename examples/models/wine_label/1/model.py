"""Probabilities of classes → the name of the best, and how likely it is."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        names = json.loads(args["model_config"])["parameters"]["names"]["string_value"]
        self.names = np.array([name.strip().encode() for name in names.split(",")], object)

    def execute(self, requests):
        """FP32[rows, classes] → BYTES[rows, 1], FP32[rows, 1] for each request."""
        responses = []
        for request in requests:
            found = pb_utils.get_input_tensor_by_name(request, "probabilities").as_numpy()
            best = found.argmax(1)
            outputs = [
                pb_utils.Tensor("cultivar", self.names[best][:, None]),
                pb_utils.Tensor("probability", found.max(1, keepdims=True)),
            ]
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
