"""Price of a flat by its rooms: a bad version, which fails for every fifth request."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.count = 0

    def execute(self, requests):
        return [self._answer(each) for each in requests]

    def _answer(self, request):
        self.count += 1
        if self.count % 5 == 0:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("no price"))
        rooms = pb_utils.get_input_tensor_by_name(request, "rooms").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("price", 102 * rooms)])
