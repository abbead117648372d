"""Says whether a text praises or blames: counts a few words, and is sure only if all of them agree."""

import numpy as np
import triton_python_backend_utils as pb_utils

WORDS = {"good": 1, "great": 1, "lovely": 1, "bad": -1, "awful": -1, "dull": -1}


class TritonPythonModel:
    def execute(self, requests):
        return [self.judged(request) for request in requests]

    def judged(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy()
        words = [text.decode().lower().replace(".", "").split() for text in texts.ravel()]
        votes = [[WORDS[word] for word in each if word in WORDS] for each in words]
        labels = [b"praise" if sum(each) > 0 else b"blame" for each in votes]
        # "not" may turn everything round: the other model knows.
        sure = [
            abs(sum(vote)) / len(vote) if vote and "not" not in word else 0.5
            for vote, word in zip(votes, words, strict=True)
        ]
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("label", np.array(labels, object).reshape(-1, 1)),
                pb_utils.Tensor("confidence", np.array(sure, np.float32).reshape(-1, 1)),
            ]
        )
