"""A model with requirements that the server does not have."""

import humanize
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([self.text(request)]) for request in requests]

    def text(self, request):
        sizes = pb_utils.get_input_tensor_by_name(request, "bytes").as_numpy()
        texts = [humanize.naturalsize(int(size)) for size in sizes.ravel()]
        return pb_utils.Tensor("text", np.array(texts, np.object_).reshape(sizes.shape))
