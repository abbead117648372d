"""Texts of lines from the probabilities of their characters, as networks trained with CTC give them."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        file = Path(args["model_repository"], args["model_version"], "characters.txt")
        # The first one stands for "no character". Some of the others end lines where Python splits them.
        self.characters = file.read_bytes().decode().split("\n")

    def execute(self, requests):
        """FP32[n, columns, characters], INT32[n] → BYTES[n], FP32[n] for each request."""
        return [self.spelt(request) for request in requests]

    def spelt(self, request):
        lines = pb_utils.get_input_tensor_by_name(request, "probabilities")
        if lines is None and pb_utils.get_input_tensor_by_name(request, "widths").as_numpy().size:
            refused = pb_utils.TritonError(
                "there are widths of lines, but no probabilities", pb_utils.TritonError.INVALID_ARG
            )
            return pb_utils.InferenceResponse(error=refused)
        read = [] if lines is None else [self.read(line) for line in lines.as_numpy()]
        texts = np.array([text.encode() for text, _ in read], object)
        scores = np.array([score for _, score in read], np.float32)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("texts", texts), pb_utils.Tensor("scores", scores)]
        )

    def read(self, line):
        """Return the text of FP32[columns, characters], and the probability of its characters on average."""
        best = line.argmax(1)
        # A character counts where it begins: "no character" is between two equal ones.
        begins = (best != 0) & (np.diff(best, prepend=0) != 0)
        text = "".join(self.characters[number] for number in best[begins])
        return text, float(line.max(1)[begins].mean()) if text else 0.0
