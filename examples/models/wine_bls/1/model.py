"""Three models called one after the other: features, forest, label. An unsure forest ends it early."""

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.least = float(parameters["least"]["string_value"])

    async def execute(self, requests):
        """BYTES[rows, 1] → BYTES[rows, 1], FP32[rows, 1] for each request, all at once."""
        return await asyncio.gather(*(self.answered(request) for request in requests))

    async def answered(self, request):
        try:
            (measurements,) = request.inputs()
            features = await called("wine_features", ["features"], measurements)
            asked = pb_utils.Tensor("input__0", features["features"].as_numpy())
            forest = await called("wine", ["output__0"], asked)
            probabilities = forest["output__0"].as_numpy()
            if (probabilities.max(1) < self.least).all():
                return unsure(probabilities)
            asked = pb_utils.Tensor("probabilities", probabilities)
            named = await called("wine_label", ["cultivar", "probability"], asked)
            return pb_utils.InferenceResponse(list(named.values()))
        except pb_utils.TritonModelException as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error)))


async def called(model, outputs, *inputs):
    """The outputs of another model by name. Raises TritonModelException with its error."""
    request = pb_utils.InferenceRequest(
        model_name=model, requested_output_names=outputs, inputs=list(inputs)
    )
    response = await request.async_exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return {tensor.name(): tensor for tensor in response.output_tensors()}


def unsure(probabilities):
    """The answer where no wine is likely."""
    names = np.full((len(probabilities), 1), b"unsure", object)
    best = probabilities.max(1, keepdims=True)
    return pb_utils.InferenceResponse(
        [pb_utils.Tensor("cultivar", names), pb_utils.Tensor("probability", best)]
    )
