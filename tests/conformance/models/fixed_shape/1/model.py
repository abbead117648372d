import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Transposes its input."""

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [
                    pb_utils.Tensor(
                        "OUTPUT0",
                        np.ascontiguousarray(
                            pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy().T
                        ),
                    )
                ]
            )
            for request in requests
        ]
