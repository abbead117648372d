import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Fails in the way that MODE names."""

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        mode = pb_utils.get_input_tensor_by_name(request, "MODE").as_numpy()[0].decode()
        if mode == "raise":
            raise ValueError("raised by the model")
        if mode == "model_exception":
            raise pb_utils.TritonModelException("model exception of the model")
        if mode == "error":
            return pb_utils.InferenceResponse(
                output_tensors=[], error=pb_utils.TritonError("error of the response")
            )
        if mode.startswith("code:"):
            code = getattr(pb_utils.TritonError, mode[5:])
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("error with a code", code))
        if mode == "unicode":
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError('snow \u2603 and "quotes"\nand a line')
            )
        text = np.array([mode.encode()], dtype=np.object_)
        tensors = [pb_utils.Tensor("OUTPUT0", text), pb_utils.Tensor("OUTPUT1", text)]
        if mode == "missing_output":
            tensors = tensors[:1]
        if mode == "unknown_output":
            tensors.append(pb_utils.Tensor("OUTPUT9", text))
        if mode == "wrong_type":
            tensors[0] = pb_utils.Tensor("OUTPUT0", np.array([1], np.int32))
        return pb_utils.InferenceResponse(tensors)
