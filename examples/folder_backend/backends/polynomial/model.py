"""A backend that is a folder: models bring the coefficients, in 1/model.json, and no code."""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(64)
        config.add_input({"name": "x", "data_type": "TYPE_FP64", "dims": [-1]})
        config.add_output({"name": "y", "data_type": "TYPE_FP64", "dims": [-1]})
        return config

    def initialize(self, args):
        with open(os.path.join(pb_utils.get_model_dir(), "model.json")) as file:
            self.coefficients = json.load(file)["coefficients"]  # the highest power first

    def execute(self, requests):
        return [pb_utils.InferenceResponse([self.value(request)]) for request in requests]

    def value(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        return pb_utils.Tensor("y", np.polyval(self.coefficients, x))
