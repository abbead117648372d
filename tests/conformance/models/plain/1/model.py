import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Doubles its input."""

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [
                    pb_utils.Tensor(
                        "OUTPUT0",
                        pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy() * 2,
                    )
                ]
            )
            for request in requests
        ]
