"""What model.py imports as `triton_python_backend_utils`.

The names, signatures and texts are those of Triton's Python backend. Needs numpy and the standard
library only, since it also runs in environments that have nothing else.
"""
