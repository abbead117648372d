"""The names that Triton's module has from C and that programs import. There is no C library behind them."""

from tritonserver._c.triton_bindings import *  # noqa: F403
from tritonserver._c.triton_bindings import __all__ as __all__
