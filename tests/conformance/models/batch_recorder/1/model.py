import json
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Returns the execution of a request, and the size of its batch.

    ROWS is the size of the whole batch, REQUESTS the number of requests in
    it, EXECUTION the number of the execution. Each execution sleeps for
    the parameter delay_ms, or for the highest input when that is 1000 or
    more, less 1000.
    """

    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.delay = float(parameters["delay_ms"]["string_value"]) / 1000
        self.executions = 0

    def execute(self, requests):
        self.executions += 1
        values = [
            pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy() for request in requests
        ]
        rows = sum(len(value) for value in values)
        highest = max(int(value.max()) for value in values)
        time.sleep((highest - 1000) / 1000 if highest >= 1000 else self.delay)
        responses = []
        for value in values:

            def filled(number):
                return np.full((len(value), 1), number, np.int32)

            responses.append(
                pb_utils.InferenceResponse(
                    [
                        pb_utils.Tensor("VALUE", value),
                        pb_utils.Tensor("ROWS", filled(rows)),
                        pb_utils.Tensor("REQUESTS", filled(len(requests))),
                        pb_utils.Tensor("EXECUTION", filled(self.executions)),
                    ]
                )
            )
        return responses
