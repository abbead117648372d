import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Returns its number of executions, so that a cached response is visible."""

    def initialize(self, args):
        self.executions = 0

    def execute(self, requests):
        responses = []
        for request in requests:
            self.executions += 1
            values = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            number = np.full((len(values), 1), self.executions, np.int32)
            responses.append(
                pb_utils.InferenceResponse(
                    [pb_utils.Tensor("OUTPUT0", values), pb_utils.Tensor("EXECUTION", number)]
                )
            )
        return responses
