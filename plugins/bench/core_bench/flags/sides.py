"""side_of: the Side that flags describe, and that of --versus."""

from __future__ import annotations

import argparse
import difflib
import shlex

from core.errors import invalid
from core_bench.flags.refused import SERVICES, refuse
from core_bench.flags.table import parser
from core_bench.plan import Sequences, Side, Tls

_KINDS = {
    "triton": "triton",
    "openai": "openai",
    "in_process": "in_process",
    "triton_c_api": "in_process",
}


def side_of(flags: argparse.Namespace, name: str = "") -> Side:
    """Return the side. Raises CoreError for flags that contradict each other, or that are not supported.

    name   for reports; "" for the model
    """
    kind = _kind(flags)
    model = flags.model or flags.positional_model
    if flags.model and flags.positional_model and flags.model != flags.positional_model:
        raise invalid(
            f"both '{flags.positional_model}' and -m {flags.model} name a model; keep one"
        )
    if not model:
        raise invalid("name a model: core bench MODEL")
    if flags.protocol not in ("http", "grpc"):
        raise invalid(f"-i {flags.protocol} is not known; expected http or grpc")
    if flags.shared_memory == "cuda":
        raise invalid("--shared-memory cuda is not supported; use --shared-memory system")
    if kind == "openai" and flags.protocol == "grpc":
        raise invalid("OpenAI's routes have no gRPC; leave out -i")
    if kind == "openai" and flags.shared_memory != "none":
        raise invalid("OpenAI's routes have no shared memory; leave out --shared-memory")
    if kind == "in_process" and flags.shared_memory != "none":
        raise invalid("a server in this process needs no shared memory; leave out --shared-memory")
    if flags.protocol == "http" and flags.grpc_compression_algorithm != "none":
        raise invalid("--grpc-compression-algorithm needs -i grpc")
    if flags.recorded_rows and (flags.batch > 1 or flags.shared_memory != "none"):
        raise invalid("--recorded-rows goes with neither -b nor --shared-memory")
    return Side(
        name=name or model,
        model=model,
        url=flags.url,
        kind=kind,
        protocol=flags.protocol,
        version=flags.version,
        batch=flags.batch,
        streaming=flags.streaming,
        json_input=flags.input_tensor_format == "json",
        json_output=flags.output_tensor_format == "json",
        memory=flags.output_shared_memory_size if flags.shared_memory == "system" else 0,
        repository=tuple(flags.model_repository),
        endpoint=flags.endpoint,
        shapes=dict(flags.shape),
        input_data=_input_data(flags),
        string_length=flags.string_length,
        string_data=flags.string_data,
        parameters=dict(flags.request_parameter),
        headers=tuple(flags.headers),
        compression=flags.grpc_compression_algorithm,
        sequences=_sequences(flags),
        tls=Tls(
            flags.ssl_grpc_use_ssl == "true",
            flags.ca_file,
            flags.certificate,
            flags.key_file,
            bool(flags.ssl_https_verify_peer),
            bool(flags.ssl_https_verify_host),
        ),
        recorded_rows=flags.recorded_rows,
        different=flags.different_requests,
        seed=flags.seed,
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the flags. Raises CoreError for flags that are not supported, SystemExit for wrong ones."""
    refuse(arguments)
    made = parser()
    flags, unknown = made.parse_known_args(_joined(arguments))
    if unknown:
        known = [name for action in made._actions for name in action.option_strings]
        near = difflib.get_close_matches(unknown[0].partition("=")[0], known, 1)
        hint = f"did you mean {near[0]}?" if near else "core bench --help lists all flags"
        made.error(f"{unknown[0]} is not known; {hint}")
    return flags


def _joined(arguments: list[str]) -> list[str]:
    """Return the arguments with '--versus=X' for '--versus', 'X'.

    argparse takes no value that begins with '-'.
    """
    made: list[str] = []
    for each in arguments:
        if made and made[-1] == "--versus":
            made[-1] = f"--versus={each}"
        else:
            made.append(each)
    return made


def sides_of(flags: argparse.Namespace, arguments: list[str]) -> list[Side]:
    """Return the side of the flags, and for --versus the same with another URL or other flags."""
    versus = flags.versus
    if not versus:
        return [side_of(flags)]
    more = shlex.split(versus) if versus.startswith("-") else ["-u", versus]
    if any(each.startswith("--versus") for each in more):
        raise invalid("--versus cannot contain --versus; two sides are compared at once")
    model = flags.model or flags.positional_model
    changed = parse([*arguments, *more])
    if changed.model != flags.model:  # --versus names another model
        changed.positional_model = None
    first = side_of(flags, f"{model} (A)")
    second = side_of(changed, f"{changed.model or changed.positional_model} (B: {versus})")
    return [first, second]


def _kind(flags: argparse.Namespace) -> str:
    if flags.service_kind in SERVICES:
        hint = SERVICES[flags.service_kind]
        raise invalid(f"--service-kind={flags.service_kind} is not supported; {hint}")
    if flags.service_kind not in _KINDS:
        raise invalid(
            f"--service-kind={flags.service_kind} is not known; expected triton, openai or in_process"
        )
    return _KINDS[flags.service_kind]


def _input_data(flags: argparse.Namespace) -> tuple[str, ...]:
    given = [*flags.input_data, *([flags.data_directory] if flags.data_directory else [])]
    if flags.zero:
        given.append("zero")
    if len(given) > 1 and ("random" in given or "zero" in given):
        raise invalid(f"--input-data is either random, zero or files, not {' and '.join(given)}")
    return tuple(given) or ("random",)


def _sequences(flags: argparse.Namespace) -> Sequences:
    if not 0 <= flags.sequence_length_variation <= 100:
        raise invalid("--sequence-length-variation is a percentage from 0 to 100")
    first, end = flags.sequence_id_range
    return Sequences(
        flags.sequence_length or 0,
        flags.sequence_length_variation / 100,
        first,
        end,
        flags.num_of_sequences,
    )
