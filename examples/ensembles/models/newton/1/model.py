"""One step of Newton's method for a cube root: a guess becomes a better one."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.improved(request) for request in requests]

    def improved(self, request):
        number, guess = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy()
            for name in ("number", "guess")
        )
        better = (2 * guess + number / guess**2) / 3
        return pb_utils.InferenceResponse([pb_utils.Tensor("better", better)])
