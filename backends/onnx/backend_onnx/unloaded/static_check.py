"""Check a version without loading it: its file, its configuration, and what the installed ONNX Runtime knows.

core check ─► [check_version] ─► facts ─► complete, check.  Libraries of custom operators are not loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import onnxruntime as ort

from backend_onnx.backend import OnnxBackend
from backend_onnx.check import check
from backend_onnx.complete import complete_from
from backend_onnx.graph import Graph
from backend_onnx.options import SHARE_SESSION, Parameters, run_options, session_options
from backend_onnx.providers import providers_for
from backend_onnx.session import model_file
from backend_onnx.unloaded.facts import Facts, facts_of
from backend_onnx.unloaded.order import circle_in
from backend_onnx.unloaded.runtime import newest_ir_version, newest_opset, operators
from backend_onnx.unloaded.wire import Damaged
from core.backend import Backend, Device
from core.completion import is_described
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid
from core.model_file import check_readable


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the file; return whether it is complete.

    path   the version's folder
    Raises the CoreError of a load for a missing or damaged file, for a file that is too new, for files that
    are missing beside it, and for an entry or parameter that does not fit.
    """
    assert isinstance(backend, OnnxBackend)
    file = model_file(config, path)
    _check_settings(config, path, backend)
    check_readable(file, config.name)
    try:
        facts = facts_of(file)
    except Damaged as error:
        raise _refused(
            config,
            file,
            f"its {file.stat().st_size} bytes are no complete ONNX model; export or copy the file again "
            f"({error})",
        ) from None
    _check_versions(config, file, facts)
    _check_operators(config, file, facts)
    _check_tensors(config, file, facts)
    _check_external(config, file, facts)
    return _compare(config, facts, backend)


def _refused(config: ModelConfig, file: Path, reason: str) -> CoreError:
    return internal(f"model '{config.name}': cannot load '{file}': {reason}")


def _check_settings(config: ModelConfig, path: Path, backend: OnnxBackend) -> None:
    without = deepcopy(config)
    without.ClearField("model_operations")  # to load a library is to run its code
    session_options(without, path, global_threads=backend.global_threads)
    run_options(config)
    Parameters(config).boolean(SHARE_SESSION, True)
    for name in config.model_operations.op_library_filename:
        places = (path / name, path.parent / name, Path(name))
        if not any(each.is_file() for each in places):
            raise invalid(
                f"model '{config.name}': the operator library '{name}' of model_operations cannot be "
                "loaded: there is no such file; give an absolute path, or one from the folder of the model "
                "or version"
            )
    kinds = {group.kind for group in config.instance_group}
    if kinds <= {0, 2}:  # KIND_AUTO and KIND_CPU
        providers_for(config, Device("CPU", 0))


def _check_versions(config: ModelConfig, file: Path, facts: Facts) -> None:
    newest = newest_ir_version()
    if newest is not None and facts.ir_version > newest:
        raise _refused(
            config,
            file,
            f"it has IR version {facts.ir_version}, onnxruntime {ort.__version__} knows up to {newest}; "
            "install a newer onnxruntime, or export the model with an older onnx",
        )
    if not facts.opsets:
        raise _refused(config, file, "it names no opset; export it again")
    for domain, version in sorted(facts.opsets.items()):
        newest = newest_opset(domain)
        if newest is not None and version > newest:
            raise _refused(
                config,
                file,
                f"it uses opset {version} of {domain or 'ai.onnx'}, onnxruntime {ort.__version__} knows "
                f"opsets up to {newest}; install a newer onnxruntime, or export the model with "
                f"opset_version={newest}",
            )


def _check_operators(config: ModelConfig, file: Path, facts: Facts) -> None:
    known = operators()
    if known is None or config.model_operations.op_library_filename:
        return
    for domain, name in sorted(facts.operators - facts.functions):
        since = known.get((domain, name))
        opset = facts.opsets.get(domain)
        if since is not None and (opset is None or since <= opset):
            continue
        whole = f"{domain}.{name}" if domain else name
        reason = (
            f"it uses the operator {whole}, which onnxruntime {ort.__version__} does not have"
            if since is None
            else f"it uses the operator {whole}, which begins with opset {since}, and names opset {opset}"
        )
        raise _refused(
            config,
            file,
            f"{reason}; install a newer one, or give the operator's library in model_operations "
            "{ op_library_filename }",
        )


def _check_tensors(config: ModelConfig, file: Path, facts: Facts) -> None:
    """Refuse tensors that nothing gives, that two things give, and that need themselves."""
    for names, reason in (
        (facts.missing, "its nodes and outputs need {}, which nothing in it gives"),
        (sorted(facts.repeated), "it defines {} more than once"),
        (circle_in(facts.nodes), "its nodes form a circle: none of {} can be computed first"),
    ):
        if names:
            shown = ", ".join(names[:20])
            raise _refused(config, file, f"{reason.format(shown)}; export it again")


def _check_external(config: ModelConfig, file: Path, facts: Facts) -> None:
    for name, size in sorted(facts.external.items()):
        weights = file.parent / name
        if not name or not weights.is_file():
            reason = f"'{name}' with its external data is missing"
        elif weights.stat().st_size < size:
            reason = f"'{name}' with its external data has {weights.stat().st_size} bytes, {size} are needed"
        else:
            continue
        raise _refused(
            config,
            file,
            f"{reason}; the files with its external data must lie beside it, under the names that it was "
            "exported with",
        )


def _compare(config: ModelConfig, facts: Facts, backend: Backend) -> bool:
    """Complete and check the configuration. Return whether it fits for certain.

    Outputs of unknown rank are not compared. It is uncertain where the file leaves a size open for which the
    configuration has a number: a session may infer that number.
    """
    unknown = {name for name, places in facts.open_outputs.items() if places is None}
    if not is_described(config):
        wanted = {io.name for io in config.output if not io.dims} if config.output else unknown
        if unknown & wanted or (unknown and not config.max_batch_size):
            return False
        complete_from(_agreeing(config, facts.graph, dict.fromkeys(unknown)), config, backend)
    check(config, _agreeing(config, facts.graph, facts.open_outputs))
    try:
        check(config, _agreeing(config, facts.graph, dict.fromkeys(unknown)))
    except CoreError:
        return False
    return True


def _agreeing(
    config: ModelConfig, graph: Graph, open_outputs: Mapping[str, set[int] | None]
) -> Graph:
    """Return the graph with the sizes of the configuration for those that are open.

    open_outputs   as in Facts
    """
    outputs = dict(graph.outputs)
    for io in config.output:
        if io.name in open_outputs:
            dims = tuple(io.reshape.shape) if io.HasField("reshape") else tuple(io.dims)
            whole = (-1, *dims) if config.max_batch_size else dims
            places, found = open_outputs[io.name], outputs[io.name]
            if places is not None and len(whole) == len(found.dims):
                whole = tuple(
                    wanted if place in places else size
                    for place, (wanted, size) in enumerate(zip(whole, found.dims, strict=True))
                )
            elif places is not None:
                continue  # of another rank
            outputs[io.name] = replace(found, dims=whole)
    return replace(graph, outputs=outputs)
