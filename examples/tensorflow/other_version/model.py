"""Run the SavedModel beside this file, with the TensorFlow of the model's own environment.

    models/old/
      1/model.py              this file
        model.savedmodel/
      config.pbtxt            backend: "python"
                              parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/opt/tf-2.18" } }

Inputs and outputs are those of the signature serving_default.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
import triton_python_backend_utils as pb_utils


def signature():
    """Return the function of the SavedModel."""
    found = tf.saved_model.load(f"{pb_utils.get_model_dir()}/model.savedmodel")
    return found.signatures["serving_default"]


def described(specs):
    """Return entries of a configuration for {name: tf.TensorSpec}."""
    for name, spec in specs.items():
        word = "STRING" if spec.dtype == tf.string else spec.dtype.name.upper()
        dims = [-1 if size is None else size for size in spec.shape.as_list()]
        yield {"name": name, "data_type": f"TYPE_{word.replace('FLOAT', 'FP')}", "dims": dims}


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        function = signature()
        for entry in described(function.structured_input_signature[1]):
            config.add_input(entry)
        for entry in described(function.structured_outputs):
            config.add_output(entry)
        return config

    def initialize(self, args):
        self.function = signature()
        self.specs = self.function.structured_input_signature[1]
        pb_utils.Logger.log_info(f"{args['model_name']} runs on TensorFlow {tf.__version__}")

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        inputs = {
            name: tf.constant(pb_utils.get_input_tensor_by_name(request, name).as_numpy())
            for name in self.specs
        }
        outputs = self.function(**inputs)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, value.numpy()) for name, value in outputs.items()]
        )
