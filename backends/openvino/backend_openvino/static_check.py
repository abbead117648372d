"""Check a version without loading it: parameters, and the XML file against the configuration.

core check ─► [check_version] ─► xml_file ─► complete, check.  Files of other formats that OpenVINO reads, and
libraries of custom operators, are not read.
"""

from __future__ import annotations

from pathlib import Path

import openvino as ov

from backend_openvino.check import check
from backend_openvino.complete import complete_from
from backend_openvino.reading import model_file, version
from backend_openvino.settings import Settings, settings_of
from backend_openvino.xml_file import Damaged, XmlFile, read_xml
from core.backend import Backend
from core.completion import is_described
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid
from core.model_file import check_readable

_IR_VERSIONS = (10, 11)


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the file; return whether the file says enough.

    path   the version's folder
    Raises the CoreError of a load for a missing, damaged or too new file, for missing weights, and for an
    entry or parameter that does not fit.
    """
    settings = settings_of(config)
    if settings.extension and not Path(settings.extension).is_file():
        raise invalid(
            f"model '{config.name}': the library of parameter 'CPU_EXTENSION_PATH', '{settings.extension}', "
            "cannot be loaded: there is no such file; give an absolute path"
        )
    file = model_file(config, path)
    if file.suffix != ".xml":
        return is_described(config)
    check_readable(file, config.name)
    try:
        found = read_xml(file)
    except Damaged as error:
        raise _unreadable(config, file, f"export or copy the model again ({error})") from None
    _check_file(config, file, found, settings)
    if not is_described(config) and any(port.dims is None for port in found.ports.output_list):
        return False
    complete_from(found.ports, config, backend)
    check(config, found.ports, reshapes=settings.reshapes)
    if config.max_batch_size:
        _check_rank(config, found)
    return True


def _unreadable(config: ModelConfig, file: Path, reason: str) -> CoreError:
    return internal(f"model '{config.name}': cannot load '{file}': {reason}")


def _check_file(config: ModelConfig, file: Path, found: XmlFile, settings: Settings) -> None:
    """Raise CoreError for a version that the installed OpenVINO lacks, and for weights that are missing."""
    if found.version not in _IR_VERSIONS:
        known = " and ".join(map(str, _IR_VERSIONS))
        reason = f"it has IR version {found.version}, OpenVINO {version()} reads {known}; convert it again"
        raise _unreadable(config, file, reason)
    for opset in sorted(found.opsets):
        if opset[5:].isdigit() and not hasattr(ov, opset) and not settings.extension:
            reason = (
                f"it uses {opset}, which OpenVINO {version()} does not have; install a newer one"
            )
            raise _unreadable(config, file, reason)
    weights = file.with_suffix(".bin")
    if not found.weights:
        return
    if not weights.is_file():
        reason = (
            f"its weights '{weights.name}' are not beside it; copy both files that "
            "openvino.save_model wrote"
        )
        raise _unreadable(config, file, reason)
    if weights.stat().st_size < found.weights:
        size = weights.stat().st_size
        reason = f"'{weights.name}' has {size} bytes, {found.weights} are needed; copy it again"
        raise _unreadable(config, file, reason)


def _check_rank(config: ModelConfig, found: XmlFile) -> None:
    for port in (*found.ports.input_list, *found.ports.output_list):
        if port.dims == ():
            raise invalid(
                f"model '{config.name}', tensor '{', '.join(port.names)}': for the model to support batching "
                "the shape should have at least 1 dimension; set max_batch_size: 0"
            )
