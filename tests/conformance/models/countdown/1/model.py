import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Counts down from IN, one response in each execution.

    Between the responses the request goes back to the scheduler.
    """

    def initialize(self, args):
        self.left = None

    def execute(self, requests):
        for request in requests:
            if self.left is None:
                self.left = int(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()[0])
            self.left -= 1
            response = pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUT", np.array([self.left], np.int32))]
            )
            sender = request.get_response_sender()
            if self.left > 0:
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                sender.send(response)
            else:
                self.left = None
                sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
