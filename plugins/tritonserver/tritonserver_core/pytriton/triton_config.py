"""TritonConfig: settings of the server, by PyTriton's names ─► options of core."""

from __future__ import annotations

import logging
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tritonserver_core.pytriton.exceptions import PyTritonValidationError

logger = logging.getLogger("core")

_PREFIX = "PYTRITON_TRITON_CONFIG_"
ACCESS_HEADER = "triton-access-token"
PROTECTED = ("shared-memory", "model-repository", "statistics", "trace", "logging")
_ENDPOINTS = (*PROTECTED, "health", "metadata", "inference", "model-config")


@dataclass(kw_only=True)
class TritonConfig:
    """The flags of the server, with underscores; None for a flag's default (docs/operate/options.md)."""

    model_repository: Path | None = None
    id: str | None = None
    log_verbose: int | None = None
    log_file: Path | None = None
    exit_timeout_secs: int | None = None
    exit_on_error: bool | None = None
    strict_readiness: bool | None = None
    allow_http: bool | None = None
    http_address: str | None = None
    http_port: int | None = None
    http_header_forward_pattern: str | None = None
    http_thread_count: int | None = None
    http_restricted_api: str | None = None
    allow_grpc: bool | None = None
    grpc_address: str | None = None
    grpc_port: int | None = None
    grpc_header_forward_pattern: str | None = None
    grpc_infer_allocation_pool_size: int | None = None
    grpc_use_ssl: bool | None = None
    grpc_use_ssl_mutual: bool | None = None
    grpc_server_cert: Path | None = None
    grpc_server_key: Path | None = None
    grpc_root_cert: Path | None = None
    grpc_infer_response_compression_level: str | None = None
    grpc_keepalive_time: int | None = None
    grpc_keepalive_timeout: int | None = None
    grpc_keepalive_permit_without_calls: bool | None = None
    grpc_http2_max_pings_without_data: int | None = None
    grpc_http2_min_recv_ping_interval_without_data: int | None = None
    grpc_http2_max_ping_strikes: int | None = None
    grpc_restricted_protocol: str | None = None
    allow_metrics: bool | None = None
    allow_gpu_metrics: bool | None = None
    allow_cpu_metrics: bool | None = None
    metrics_interval_ms: int | None = None
    metrics_port: int | None = None
    metrics_address: str | None = None
    allow_sagemaker: bool | None = None
    sagemaker_port: int | None = None
    sagemaker_safe_port_range: str | None = None
    sagemaker_thread_count: int | None = None
    allow_vertex_ai: bool | None = None
    vertex_ai_port: int | None = None
    vertex_ai_thread_count: int | None = None
    vertex_ai_default_model: str | None = None
    metrics_config: list[str] | None = None
    trace_config: list[str] | None = None
    cache_config: list[str] | None = None
    cache_directory: str | None = None
    buffer_manager_thread_count: int | None = None

    def __post_init__(self) -> None:
        """Raise PyTritonValidationError if neither HTTP nor gRPC is allowed."""
        if self.allow_http is False and self.allow_grpc is False:
            raise PyTritonValidationError("allow_http or allow_grpc must be true")

    def to_dict(self) -> dict[str, Any]:
        """Return all settings by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None."""
        return {name: value for name, value in self.to_dict().items() if value is not None}

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> TritonConfig:
        """Return the settings of a dict, whose values may be text. Unknown names are logged."""
        types = {each.name: str(each.type) for each in fields(cls)}
        if unknown := sorted(set(config) - set(types)):
            logger.warning("TritonConfig has no %s; ignored", ", ".join(unknown))
        return cls(**{name: _cast(types[name], config[name]) for name in config if name in types})

    @classmethod
    def from_env(cls) -> TritonConfig:
        """Return the settings of the variables PYTRITON_TRITON_CONFIG_<NAME>, of lists <NAME>_<NUMBER>."""
        found: dict[str, Any] = {}
        lists: dict[str, dict[int, str]] = {}
        for variable, value in os.environ.items():
            if not variable.startswith(_PREFIX):
                continue
            name = variable.removeprefix(_PREFIX).lower()
            if numbered := re.fullmatch(r"(.+?)_(\d+)", name):
                lists.setdefault(numbered[1], {})[int(numbered[2])] = value
            else:
                found[name] = value
        return cls.from_dict(
            found | {name: [each[i] for i in sorted(each)] for name, each in lists.items()}
        )


def _cast(kind: str, value: Any) -> Any:
    """Return a value of the type that an annotation names."""
    if value is None:
        return None
    if kind.startswith("list"):
        return value.split(",") if isinstance(value, str) else list(value)
    if kind.startswith("bool") and isinstance(value, str):
        return value.strip().lower() in ("1", "true", "on", "yes")
    kinds: dict[str, type] = {"int": int, "bool": bool, "Path": Path, "str": str}
    return kinds[kind.partition(" ")[0]](value)


@dataclass
class TritonLifecyclePolicy:
    """launch_triton_on_startup: whether the server starts in a `with` block; else at `run` or `serve`.

    local_model_store has no effect: functions need no files.
    """

    launch_triton_on_startup: bool = True
    local_model_store: bool = False


@dataclass
class TritonSecurityConfig:
    """A token that clients send as `triton-access-token` for some kinds of requests.

    access_token           None: a random one, which `Triton.get_access_token` returns
    restricted_endpoints   kinds of requests, by the names of --http-restricted-api; [] for none
    """

    access_token: str | None = None
    restricted_endpoints: list[str] = field(default_factory=lambda: list(PROTECTED))

    def __post_init__(self) -> None:
        """Raise PyTritonValidationError for an unknown kind of requests."""
        if self.restricted_endpoints is None:
            self.restricted_endpoints = list(PROTECTED)
        if unknown := sorted(set(self.restricted_endpoints) - set(_ENDPOINTS)):
            raise PyTritonValidationError(
                f"restricted_endpoints hold {unknown}; known are {sorted(_ENDPOINTS)}"
            )
        if self.access_token is None and self.restricted_endpoints:
            self.access_token = secrets.token_urlsafe(32)

    def options(self) -> dict[str, Any]:
        """Return the options of core."""
        if not self.access_token or not self.restricted_endpoints:
            return {}
        rule = f"{','.join(self.restricted_endpoints)}:{ACCESS_HEADER}={self.access_token}"
        return {"http_restricted_api": [rule], "grpc_restricted_protocol": [rule]}
