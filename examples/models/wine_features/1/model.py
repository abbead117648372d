"""JSON with the measurements of a wine → a row of numbers, NaN where one is missing."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils

NAMES = (
    "alcohol",
    "malic_acid",
    "ash",
    "alcalinity_of_ash",
    "magnesium",
    "total_phenols",
    "flavanoids",
    "nonflavanoid_phenols",
    "proanthocyanins",
    "color_intensity",
    "hue",
    "od280/od315_of_diluted_wines",
    "proline",
)


class TritonPythonModel:
    def execute(self, requests):
        """BYTES[rows, 1] → FP32[rows, 13] for each request."""
        responses = []
        for request in requests:
            texts = pb_utils.get_input_tensor_by_name(request, "measurements").as_numpy()
            try:
                rows = np.array([row_of(text) for text in texts.ravel()], np.float32)
            except ValueError as error:
                failed = pb_utils.TritonError(f"measurements: {error}")
                responses.append(pb_utils.InferenceResponse(error=failed))
                continue
            features = pb_utils.Tensor("features", rows.reshape(-1, len(NAMES)))
            responses.append(pb_utils.InferenceResponse([features]))
        return responses


def row_of(text):
    """The numbers of one wine. Raises ValueError for what is no JSON object of known measurements."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError('a JSON object is expected, such as {"alcohol": 13.2}')
    if unknown := found.keys() - set(NAMES):
        raise ValueError(f"no measurement is called {sorted(unknown)[0]!r}")
    return [float(found.get(name, "nan")) for name in NAMES]
