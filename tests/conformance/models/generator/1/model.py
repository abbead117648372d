import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Answers its text, with the request's parameters after it if there are any."""

    def execute(self, requests):
        responses = []
        for request in requests:
            text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[0].decode()
            if text == "FAIL":
                responses.append(
                    pb_utils.InferenceResponse(error=pb_utils.TritonError("asked to fail"))
                )
                continue
            length = len(text)
            parameters = json.loads(request.parameters())
            if parameters:
                text += " " + json.dumps(parameters, sort_keys=True)
            responses.append(
                pb_utils.InferenceResponse(
                    [
                        pb_utils.Tensor("text_output", np.array([text.encode()], np.object_)),
                        pb_utils.Tensor("length", np.array([length], np.int32)),
                    ]
                )
            )
        return responses
