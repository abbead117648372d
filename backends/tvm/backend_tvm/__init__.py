"""backend-tvm: modules that TVM has compiled, run by its Relax virtual machine.

folder of a version ─► elf, executable, params ─► reading ─► complete, check ─► machine ─► instance
"""

from backend_tvm.backend import backend

__all__ = ["backend"]
