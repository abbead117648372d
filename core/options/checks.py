"""What must hold between options."""

from __future__ import annotations

from itertools import combinations

from core.errors import invalid
from core.options.table import Options
from core.options.values import UsageError


def check_together(options: Options) -> None:
    """Raise UsageError for options that contradict each other."""
    if options.load_model and options.model_control_mode != "explicit":
        raise UsageError(
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well."
        )
    listeners = [
        (what, address, port)
        for what, allowed, address, port in (
            ("HTTP", options.allow_http, options.http_address, options.http_port),
            ("GRPC", options.allow_grpc, options.grpc_address, options.grpc_port),
            ("metrics", options.allow_metrics, options.metrics_address, options.metrics_port),
        )
        if allowed and port
    ]
    for (first, address, port), (second, *other) in combinations(listeners, 2):
        if [address, port] == other:
            raise UsageError(
                f"The server cannot listen to {first} requests and {second} requests "
                f"at the same address and port {address}:{port}"
            )


def check_server(options: Options) -> None:
    """Raise CoreError(INVALID) for options that no server can be created from."""
    if not options.model_repository:
        raise invalid("--model-repository must be specified")
    if "*" in options.load_model and len(options.load_model) > 1:
        raise invalid("Wildcard model name '*' must be the ONLY startup model if specified at all.")
    if len(options.cache_config) > 1:
        raise invalid(
            "found multiple cache configurations, but only a single cache is currently supported"
        )
    for setting in {key for policy in options.host_policy.values() for key in policy}:
        if setting not in ("numa-node", "cpu-cores"):
            raise invalid(
                f"Unsupported host policy setting '{setting}' is specified, "
                "supported settings are 'numa-node', 'cpu-cores'"
            )
