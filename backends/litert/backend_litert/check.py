"""Refuse a configuration that the model file contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.
"""

from __future__ import annotations

from backend_litert.reading import Contents
from backend_litert.settings import Settings
from core.config import ModelConfig
from core.errors import invalid, unsupported
from core.file_signature import check_fields


def check(config: ModelConfig, found: Contents, settings: Settings) -> None:
    """Compare every tensor of the configuration with the file.

    Raises CoreError(INVALID) for a name, datatype, shape or number of inputs that does not fit, and for a
    batch that the file cannot have; CoreError(UNSUPPORTED) for what this backend does not have.
    """
    ports = found.ports(settings.signature, config.name)
    check_fields(config, "LiteRT")
    if found.has_variables and not settings.keep_variables:
        raise unsupported(
            f"model '{config.name}': the file has variables, which would carry values of one client's "
            "request into the answer of another; make them inputs and outputs, with "
            "sequence_batching.state, or set the parameter 'keep_variables' to 'true'"
        )
    if config.max_batch_size and not (ports.batches or ports.has_one_row):
        shapes = ", ".join(f"'{each.name}' {list(each.dims)}" for each in ports.all)
        raise invalid(
            f"model '{config.name}': max_batch_size is {config.max_batch_size}, but the first dimension of a "
            f"tensor in the file is neither open nor 1 ({shapes}); set max_batch_size to 0"
        )
    ports.as_sent(settings.float_tensors).check(config)
