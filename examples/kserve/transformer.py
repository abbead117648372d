"""A transformer of KServe in front of core: images of digits in, their names out.

    pip install kserve
    python transformer.py --model_name=digits --predictor_host=localhost:8000 --predictor_protocol=v2

It speaks the protocol of its predictor: v1 takes {"instances": [{"b64": image}]}; v2 and grpc-v2 take a
tensor BYTES of images, in JSON as base64. core computes the probabilities between.
"""

import argparse
import base64
import io

import numpy as np
from kserve import InferInput, InferOutput, InferRequest, InferResponse, Model, ModelServer
from kserve.model_server import parser
from PIL import Image

NAMES = np.array(
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"], object
)


def pixels(image):
    """Return the 8 x 8 grey values of an image, as the model takes them: 0 is white, 16 is black."""
    grey = Image.open(io.BytesIO(image)).convert("L").resize((8, 8), Image.Resampling.BOX)
    return (255 - np.asarray(grey, np.float32)) * (16 / 255)


class Digits(Model):
    """The model `digits` of the predictor, for images. The base class sends the request."""

    def preprocess(self, payload, headers=None):
        if isinstance(payload, dict):
            images = [base64.b64decode(each["b64"]) for each in payload["instances"]]
            return {"instances": [pixels(each).tolist() for each in images]}
        images = payload.inputs[0].as_numpy().ravel()
        images = [base64.b64decode(each) if isinstance(each, str) else each for each in images]
        tensor = InferInput("pixels", [len(images), 8, 8], "FP32")
        tensor.set_data_from_numpy(np.stack([pixels(each) for each in images]))
        return InferRequest(self.name, [tensor], request_id=payload.id)

    def postprocess(self, result, headers=None, response_headers=None):
        if isinstance(result, dict):
            best = np.argmax(result["predictions"], axis=1)
            return {"predictions": NAMES[best].tolist()}
        found = NAMES[result.outputs[0].as_numpy().argmax(axis=1)]
        output = InferOutput("names", list(found.shape), "BYTES")
        output.set_data_from_numpy(found, binary_data=False)
        return InferResponse(result.id, self.name, [output])


if __name__ == "__main__":
    options, _ = argparse.ArgumentParser(parents=[parser]).parse_known_args()
    model = Digits(options.model_name)
    model.load()
    ModelServer().start([model])
