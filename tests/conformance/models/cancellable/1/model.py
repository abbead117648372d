import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Waits MS milliseconds or until the request is cancelled.

    A negative MS answers at once how many requests were cancelled so far.
    """

    def initialize(self, args):
        self.cancelled = 0

    def execute(self, requests):
        for request in requests:
            wait = int(pb_utils.get_input_tensor_by_name(request, "MS").as_numpy()[0])
            sender = request.get_response_sender()
            if wait < 0:
                self._answer(sender, self.cancelled)
            else:
                threading.Thread(target=self._wait, args=(sender, wait / 1000)).start()

    def _wait(self, sender, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if sender.is_cancelled():
                self.cancelled += 1
                self._answer(sender, -1)
                return
            time.sleep(0.01)
        self._answer(sender, 0)

    @staticmethod
    def _answer(sender, value):
        sender.send(
            pb_utils.InferenceResponse([pb_utils.Tensor("CANCELLED", np.array([value], np.int32))]),
            flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
        )
