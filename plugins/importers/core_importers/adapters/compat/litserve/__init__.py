"""Stands in for the package litserve: the base class of a LitAPI, without its server.

Written for this project after LitServe's documented behaviour. LitServer does nothing here.
"""

__version__ = "0"


class LitAPI:
    request_timeout = None
    device = None
    spec = None

    def __init__(
        self, max_batch_size=1, batch_timeout=0.0, stream=False, enable_async=False, **others
    ):
        self.max_batch_size = max_batch_size
        self.batch_timeout = batch_timeout
        self.stream = stream
        self.enable_async = enable_async

    def pre_setup(self, spec=None):
        pass

    def setup(self, device):
        pass

    def decode_request(self, request, **kwargs):
        return request

    def batch(self, inputs):
        """Stack tensors and arrays; leave anything else as a list."""
        if hasattr(inputs[0], "__torch_function__"):
            import torch

            return torch.stack(inputs)
        if type(inputs[0]).__name__ == "ndarray":
            import numpy

            return numpy.stack(inputs)
        return inputs

    def predict(self, x, **kwargs):
        raise NotImplementedError("predict")

    def unbatch(self, output):
        """Return the outputs as a list; of a stream, an iterator of such a list for each step."""
        return (list(each) for each in output) if self.stream else list(output)

    def encode_response(self, output, **kwargs):
        return output

    def log(self, key, value):
        pass

    def health(self):
        return True


class LitServer:
    """Takes what a script gives it; `run` returns at once."""

    def __init__(self, *args, **kwargs):
        pass

    def run(self, *args, **kwargs):
        pass


class Callback:
    pass


class Logger:
    pass
