import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Answers its text count times; "FAIL:N" answers an error as response N."""

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[0].decode()
            count = pb_utils.get_input_tensor_by_name(request, "count")
            count = 3 if count is None else int(count.as_numpy()[0])
            for index in range(count):
                if text == f"FAIL:{index}":
                    sender.send(
                        pb_utils.InferenceResponse(error=pb_utils.TritonError(f"failed at {index}"))
                    )
                    continue
                sender.send(
                    pb_utils.InferenceResponse(
                        [
                            pb_utils.Tensor("text_output", np.array([text.encode()], np.object_)),
                            pb_utils.Tensor("index", np.array([index], np.int32)),
                        ]
                    )
                )
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
