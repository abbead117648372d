"""Models for MLServer. Runs in a separate environment; model-settings.json refers to it."""

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class _Arrays(MLModel):
    """Base class of models with arrays as inputs and outputs."""

    async def load(self):
        return True

    def answer(self, inputs):
        raise NotImplementedError

    async def predict(self, payload):
        inputs = {each.name: NumpyCodec.decode_input(each) for each in payload.inputs}
        outputs = self.answer(inputs)
        return InferenceResponse(
            model_name=self.name,
            model_version="1",
            outputs=[_encoded(name, array) for name, array in outputs.items()],
        )


def _encoded(name, array):
    output = NumpyCodec.encode_output(name, array)
    output.shape = list(array.shape)  # the codec turns a vector into a column
    return output


class Identity(_Arrays):
    def answer(self, inputs):
        return {"OUTPUT0": inputs["INPUT0"]}


class AddSub(_Arrays):
    def answer(self, inputs):
        left, right = inputs["INPUT0"], inputs["INPUT1"]
        return {"OUTPUT0": left + right, "OUTPUT1": left - right}


class Mlp(_Arrays):
    async def load(self):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the server has one core
        self._session = onnxruntime.InferenceSession(
            self.settings.parameters.uri, options, providers=["CPUExecutionProvider"]
        )
        return True

    def answer(self, inputs):
        rows = np.asarray(inputs["INPUT0"], np.float32)
        return {"OUTPUT0": self._session.run(["OUTPUT0"], {"INPUT0": rows})[0]}
