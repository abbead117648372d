"""Refuse a configuration that the function contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.
"""

from __future__ import annotations

from backend_tvm.tensors import Ports
from core.config import ModelConfig
from core.errors import invalid
from core.file_signature import check_fields


def check(config: ModelConfig, ports: Ports) -> None:
    """Compare every tensor of the configuration with the function, but for outputs that are not known yet.

    Raises CoreError(INVALID) for a name, datatype, shape or number of inputs that does not fit, and for a
    batch that the function cannot have; CoreError(UNSUPPORTED) for what this backend does not have.
    """
    check_fields(config, "TVM")
    if config.max_batch_size and not ports.batches:
        shapes = ", ".join(f"'{each.name}' [{', '.join(each.written)}]" for each in ports.all)
        raise invalid(
            f"model '{config.name}': max_batch_size is {config.max_batch_size}, but not all tensors of the "
            f"function begin with the same variable dimension, and have it only there ({shapes}); give them "
            "one before you compile, or set max_batch_size to 0"
        )
    ports.check(config)
