import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Answers one response for every element of IN.

    WAIT_MS is the pause before each response. MODE: "flag_on_last" puts the
    final flag on the last response instead of after it; "error_at:N" answers
    an error in place of response N; "thread" answers from another thread;
    "raise" raises before the first response.
    """

    def execute(self, requests):
        for request in requests:
            tensors = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
            mode = tensors["MODE"][0].decode() if "MODE" in tensors else ""
            wait = int(tensors["WAIT_MS"][0]) / 1000 if "WAIT_MS" in tensors else 0
            if mode == "raise":
                raise ValueError("raised before any response")
            arguments = (request.get_response_sender(), tensors["IN"].copy(), wait, mode)
            if mode == "thread":
                threading.Thread(target=self._send, args=arguments).start()
            else:
                self._send(*arguments)
        return None

    @staticmethod
    def _send(sender, values, wait, mode):
        final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
        for index, value in enumerate(values):
            if wait:
                time.sleep(wait)
            if mode == f"error_at:{index}":
                response = pb_utils.InferenceResponse(
                    error=pb_utils.TritonError(f"error at {index}")
                )
            else:
                response = pb_utils.InferenceResponse(
                    [
                        pb_utils.Tensor("OUT", np.array([value], np.int32)),
                        pb_utils.Tensor("INDEX", np.array([index], np.uint32)),
                    ]
                )
            if mode == "flag_on_last" and index == len(values) - 1:
                sender.send(response, flags=final)
                return
            sender.send(response)
        sender.send(flags=final)
