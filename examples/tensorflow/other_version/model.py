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

TYPES = {
    tf.bool: "TYPE_BOOL",
    tf.uint8: "TYPE_UINT8",
    tf.uint16: "TYPE_UINT16",
    tf.uint32: "TYPE_UINT32",
    tf.uint64: "TYPE_UINT64",
    tf.int8: "TYPE_INT8",
    tf.int16: "TYPE_INT16",
    tf.int32: "TYPE_INT32",
    tf.int64: "TYPE_INT64",
    tf.float16: "TYPE_FP16",
    tf.float32: "TYPE_FP32",
    tf.float64: "TYPE_FP64",
    tf.bfloat16: "TYPE_BF16",
    tf.string: "TYPE_STRING",
}


def loaded():
    """Return the SavedModel. Keep it: its variables end with it, not with its functions."""
    return tf.saved_model.load(f"{pb_utils.get_model_dir()}/model.savedmodel")


def described(specs):
    """Return entries of a configuration for {name: tf.TensorSpec}."""
    for name, spec in specs.items():
        dims = [-1 if size is None else size for size in spec.shape.as_list()]
        yield {"name": name, "data_type": TYPES[spec.dtype], "dims": dims}


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        model = loaded()
        function = model.signatures["serving_default"]
        for entry in described(function.structured_input_signature[1]):
            config.add_input(entry)
        for entry in described(function.structured_outputs):
            config.add_output(entry)
        return config

    def initialize(self, args):
        self.model = loaded()
        self.function = self.model.signatures["serving_default"]
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
