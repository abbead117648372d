"""An explainer of KServe in front of core: which parts of an image speak for its digit.

    pip install kserve
    python explainer.py --model_name=digits --predictor_host=localhost:8000

POST /v1/models/digits:explain takes the {"instances": [image]} of :predict, 8 x 8 grey values each. Each
square of 2 x 2 pixels is erased in turn: what the digit loses of its probability is how much the square
speaks for it. One request to core computes the 17 probabilities of an image. Other requests pass as they are.
"""

import argparse

import numpy as np
from kserve import Model, ModelServer
from kserve.errors import InvalidInput
from kserve.model_server import parser

SIDE, SQUARE = 8, 2
SQUARES = SIDE // SQUARE  # in a row, and in a column


def read(payload):
    """Return the images of a request: [n, 8, 8]. Raises InvalidInput, which the SDK answers with 400."""
    found = payload.get("instances") if isinstance(payload, dict) else None
    if found is None:
        raise InvalidInput('expected {"instances": [image, …]}; explanations are of protocol v1')
    try:
        images = np.array(found, np.float32)
    except (TypeError, ValueError):
        images = np.zeros(0)
    if images.ndim != 3 or images.shape[1:] != (SIDE, SIDE):
        raise InvalidInput(f"expected images of {SIDE} x {SIDE} numbers in `instances`")
    return images


def with_squares_erased(image):
    """Return the image, and after it one copy for each square, without it: [17, 8, 8]."""
    copies = np.repeat(image[None], 1 + SQUARES**2, axis=0)
    for number, copy in enumerate(copies[1:]):
        row, column = (SQUARE * each for each in divmod(number, SQUARES))
        copy[row : row + SQUARE, column : column + SQUARE] = 0
    return copies


class Occlusion(Model):
    """Explains the model of the predictor that has its name. The base class sends the requests."""

    async def explain(self, payload, headers=None):
        return {"explanations": [await self._explained(each) for each in read(payload)]}

    async def _explained(self, image):
        request = {"instances": with_squares_erased(image).tolist()}
        whole, *erased = np.array((await self.predict(request))["predictions"])
        best = int(whole.argmax())
        losses = [float(whole[best] - each[best]) for each in erased]
        return {
            "digit": best,
            "probability": float(whole[best]),
            "losses": [losses[i : i + SQUARES] for i in range(0, len(losses), SQUARES)],
        }


if __name__ == "__main__":
    options, _ = argparse.ArgumentParser(parents=[parser]).parse_known_args()
    model = Occlusion(options.model_name)
    model.load()
    ModelServer().start([model])
