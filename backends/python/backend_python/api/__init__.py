"""What model.py imports as `triton_python_backend_utils`.

The names, signatures and texts are those of Triton's Python backend. Needs numpy and the standard
library only, since it also runs in environments that have nothing else.

datatypes.py   numbers and numpy types of the datatypes      tensor.py dlpack.py gpu.py   Tensor
cuda.py        what is copied out of a GPU
errors.py      TritonError, TritonModelException             request.py response.py sender.py iterator.py
lookup.py      get_…_by_name                                 model_config.py   for auto_complete_config
logger.py metrics.py models.py                               calls into the server
host.py        the other side of all of these: a channel to the server, or the server itself
"""
