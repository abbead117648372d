"""The module that model.py imports as `triton_python_backend_utils`.

The names, signatures and texts are those of Triton's Python backend. It needs only numpy and the standard
library, because a model's environment may have nothing else.
"""
