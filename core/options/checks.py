"""Checks of options: contradictions between flags, and options that no server can be created from."""

from __future__ import annotations

from itertools import combinations

from core.errors import invalid
from core.options.table import Options
from core.options.values import UsageError
from core.system.host_policy import HostPolicies


def check_together(options: Options) -> None:
    """Raise UsageError for options that contradict each other."""
    if options.load_model and options.model_control_mode != "explicit":
        raise UsageError(
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well."
        )
    for part in options.parts:
        part.of(options).check_usage(options)
    listeners = [
        (each.what, each.address, 0 if each.is_unix else each.port)
        for each in options.listeners()
        if each.is_unix or each.port
    ]
    for (first, address, port), (second, *other) in combinations(listeners, 2):
        if [address, port] == other:
            place = f"address and port {address}:{port}" if port else f"address {address}"
            raise UsageError(
                f"The server cannot listen to {first} requests and {second} requests at the same {place}"
            )


def check_server(options: Options, *, without_models: bool = False) -> None:
    """Raise CoreError(INVALID) for options that no server can be created from.

    without_models   whether a server without a repository is permitted: its models come in another way
    """
    if not options.model_repository and not without_models:
        raise invalid("--model-repository must be specified")
    if "*" in options.load_model and len(options.load_model) > 1:
        raise invalid("Wildcard model name '*' must be the ONLY startup model if specified at all.")
    if len(options.cache_config) > 1:
        raise invalid(
            "found multiple cache configurations, but only a single cache is currently supported"
        )
    for part in options.parts:
        part.of(options).check(options)
    HostPolicies(options.host_policy)  # raises for what this machine cannot follow


def reads_again(options: Options) -> bool:
    """Return whether SIGHUP has work to do: files to read again, or an access log to open again."""
    return any(part.of(options).reads_again for part in options.parts)
