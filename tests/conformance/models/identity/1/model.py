import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Answers every input INPUTn as OUTPUTn, without looking at the values."""

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([self._copy(tensor) for tensor in request.inputs()])
            for request in requests
        ]

    @staticmethod
    def _copy(tensor):
        name = tensor.name().replace("INPUT", "OUTPUT")
        try:
            return pb_utils.Tensor(name, tensor.as_numpy())
        except Exception:
            # numpy has no BF16.
            return pb_utils.Tensor.from_dlpack(name, tensor)
