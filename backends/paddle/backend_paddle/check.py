"""Refuse a configuration that the model contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.
"""

from __future__ import annotations

from backend_paddle.tensors import Ports
from core.config import ModelConfig
from core.errors import invalid
from core.file_signature import check_fields


def check(config: ModelConfig, ports: Ports) -> None:
    """Compare every tensor of the configuration with the file.

    Raises CoreError(INVALID) for a name, datatype, shape or number of inputs that does not fit, and for a
    batch that the file cannot have; CoreError(UNSUPPORTED) for what this backend does not have.
    """
    check_fields(config, "Paddle")
    if config.max_batch_size and not ports.batches:
        fixed = ", ".join(
            f"'{each.name}' {list(each.dims)}" for each in ports.all if each.dims[:1] != (-1,)
        )
        raise invalid(
            f"model '{config.name}': max_batch_size is {config.max_batch_size}, but the first dimension of a "
            f"tensor in the file is not open ({fixed}); set max_batch_size to 0, or export the model with "
            "None as the first dimension of its inputs"
        )
    ports.check(config)
