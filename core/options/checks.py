"""What must hold between options."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from core.errors import invalid
from core.options.platforms import EVERYWHERE, check_port
from core.options.secure import check_secure
from core.options.table import Options
from core.options.values import UsageError
from core.system.host_policy import HostPolicies


def check_together(options: Options) -> None:
    """Raise UsageError for options that contradict each other."""
    if options.load_model and options.model_control_mode != "explicit":
        raise UsageError(
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well."
        )
    listeners = [
        (what, address, 0 if address.startswith("unix:") else port)
        for what, allowed, address, port in (
            ("HTTP", options.allow_http, options.http_address, options.http_port),
            ("GRPC", options.allow_grpc, options.grpc_address, options.grpc_port),
            ("metrics", options.allow_metrics, options.metrics_address, options.metrics_port),
            ("SageMaker", options.allow_sagemaker, EVERYWHERE, options.sagemaker_port),
            ("Vertex AI", options.allow_vertex_ai, EVERYWHERE, options.vertex_ai_port),
        )
        if allowed and (port or address.startswith("unix:"))
    ]
    _check_safe_ports(options, listeners)
    check_port()
    for (first, address, port), (second, *other) in combinations(listeners, 2):
        if [address, port] == other:
            if not port:
                raise UsageError(
                    f"The server cannot listen to {first} requests and {second} requests at the same "
                    f"address {address}"
                )
            raise UsageError(
                f"The server cannot listen to {first} requests and {second} requests "
                f"at the same address and port {address}:{port}"
            )


def _check_safe_ports(options: Options, listeners: Sequence[tuple[str, str, int]]) -> None:
    """Beside SageMaker's endpoints the others may listen where its platform lets them only."""
    if not options.allow_sagemaker or options.sagemaker_safe_port_range is None:
        return
    first, last = options.sagemaker_safe_port_range
    for what, address, port in listeners:
        if what != "SageMaker" and address == EVERYWHERE and not first <= port <= last:
            raise UsageError(
                f"The server cannot listen to {what} requests at port {port}, allowed port range is "
                f"[{first}, {last}]"
            )


def check_server(options: Options, *, without_models: bool = False) -> None:
    """Raise CoreError(INVALID) for options that no server can be created from.

    without_models   a server without a repository makes sense: its models come in another way
    """
    if not options.model_repository and not without_models:
        raise invalid("--model-repository must be specified")
    if "*" in options.load_model and len(options.load_model) > 1:
        raise invalid("Wildcard model name '*' must be the ONLY startup model if specified at all.")
    if len(options.cache_config) > 1:
        raise invalid(
            "found multiple cache configurations, but only a single cache is currently supported"
        )
    check_secure(options)
    if options.metrics_use_ssl and not (options.http_server_cert and options.http_server_key):
        raise invalid(
            "--metrics-use-ssl needs the certificate of --http-server-cert and --http-server-key"
        )
    HostPolicies(options.host_policy)  # raises for what this machine cannot follow


def reads_again(options: Options) -> bool:
    """Whether there are files that SIGHUP makes the server read again."""
    return bool(
        options.access_log
        or options.auth_tokens
        or options.auth_jwks
        or options.http_use_ssl
        or options.http_use_ssl_mutual
        or options.grpc_use_ssl
        or options.grpc_use_ssl_mutual
        or options.metrics_use_ssl
    )
