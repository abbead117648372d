import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Sums the inputs of a sequence; returns its control tensors.

    OUTPUT is the running sum. TRACE names the correlation ID, the START, END
    and READY values, and the slot of the batch in which the request came.
    """

    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        responses = []
        for _slot, request in enumerate(requests):
            tensors = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
            flat = {name: value.reshape(-1)[0] for name, value in tensors.items()}
            key = flat.get("CORRID", request.correlation_id())
            key = (
                key.decode()
                if isinstance(key, bytes)
                else int(key)
                if not isinstance(key, str)
                else key
            )
            if int(flat.get("READY", 1)) == 0:
                responses.append(pb_utils.InferenceResponse([]))
                continue
            if int(flat["START"]):
                self.sums[key] = 0
            self.sums[key] = self.sums.get(key, 0) + int(flat["INPUT"])
            total = self.sums[key]
            if int(flat["END"]):
                del self.sums[key]
            text = "{}|{}|{}|{}".format(
                key, int(flat["START"]), int(flat["END"]), int(flat.get("READY", 1))
            )
            shape = tensors["INPUT"].shape
            responses.append(
                pb_utils.InferenceResponse(
                    [
                        pb_utils.Tensor("OUTPUT", np.full(shape, total, np.int32)),
                        pb_utils.Tensor("TRACE", np.full(shape, text.encode(), np.object_)),
                    ]
                )
            )
        return responses
