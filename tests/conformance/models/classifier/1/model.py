import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Answers its input as scores."""

    def execute(self, requests):
        responses = []
        for request in requests:
            scores = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            responses.append(
                pb_utils.InferenceResponse(
                    [pb_utils.Tensor("LABELLED", scores), pb_utils.Tensor("BARE", scores)]
                )
            )
        return responses
