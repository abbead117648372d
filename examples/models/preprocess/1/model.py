"""Photographs → what image models take: the largest square in the middle, 224x224, normalised, CHW."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils

SIZE = 224


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.mean, self.deviation = (
            np.array(parameters[name]["string_value"].split(","), np.float32)
            for name in ("mean", "deviation")
        )

    def execute(self, requests):
        """UINT8[rows, height, width, 3] → FP32[rows, 3, 224, 224] for each request."""
        responses = []
        for request in requests:
            images = pb_utils.get_input_tensor_by_name(request, "image").as_numpy()
            if 0 in images.shape:
                error = pb_utils.TritonError(f"an image of shape {images.shape} has no pixels")
                responses.append(pb_utils.InferenceResponse(error=error))
                continue
            square = resized(middle_square(images.astype(np.float32)), SIZE) / 255
            pixels = ((square - self.mean) / self.deviation).transpose(0, 3, 1, 2)
            output = pb_utils.Tensor("pixels", np.ascontiguousarray(pixels, np.float32))
            responses.append(pb_utils.InferenceResponse([output]))
        return responses


def middle_square(images):
    """[rows, height, width, 3] → the largest square in the middle of each."""
    height, width = images.shape[1:3]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return images[:, top : top + side, left : left + side]


def resized(images, size):
    """[rows, side, side, 3] → [rows, size, size, 3], bilinear between the centres of pixels."""
    side = images.shape[1]
    at = np.clip((np.arange(size) + 0.5) * side / size - 0.5, 0, side - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, side - 1)
    share = (at - low).astype(np.float32)
    down = share[:, None, None]
    rows = images[:, low] * (1 - down) + images[:, high] * down
    across = share[:, None]
    return rows[:, :, low] * (1 - across) + rows[:, :, high] * across
