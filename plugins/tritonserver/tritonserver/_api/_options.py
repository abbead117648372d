"""Options of a server: Triton's names ─► [Options] ─► core's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tritonserver._api._enums import (
    InstanceGroupKind,
    LogFormat,
    ModelControlMode,
    RateLimitMode,
)
from tritonserver._api._errors import InvalidArgumentError
from tritonserver._api._logging import LogCallback

_NEVER_S = 2**31 - 1  # between two polls that core makes itself


@dataclass
class RateLimiterResource:
    """An amount of a resource.

    device   number of the device; -1 for each device
    """

    name: str
    count: int
    device: int = -1


@dataclass
class ModelLoadDeviceLimit:
    """Share of the memory of a GPU above which no model is loaded."""

    kind: InstanceGroupKind
    device: int
    fraction: float


@dataclass
class Options:
    """Options of a server, by the names of Triton's module; docs/operate/options.md describes them.

    exit_timeout       seconds that `stop` waits for running requests
    log_info, …        what the log shows on stderr or in `log_file`; each level includes the ones above it.
                       If none is on, messages go to the logger "core" of the program only
    metrics_interval   milliseconds
    log_callback       gets level, file, line, time in nanoseconds and text of each message of the log
    `Server.start` checks them.
    """

    model_repository: str | list[str] = field(default_factory=list)
    server_id: str = "triton"
    model_control_mode: ModelControlMode = ModelControlMode.NONE
    startup_models: list[str] = field(default_factory=list)
    strict_model_config: bool = False
    rate_limiter_mode: RateLimitMode = RateLimitMode.OFF
    rate_limiter_resources: list[RateLimiterResource] = field(default_factory=list)
    pinned_memory_pool_size: int = 1 << 28
    cuda_memory_pool_sizes: dict[int, int] = field(default_factory=dict)
    cache_config: dict[str, dict[str, Any]] = field(default_factory=dict)
    cache_directory: str = "/opt/tritonserver/caches"
    min_supported_compute_capability: float = 6.0
    exit_on_error: bool = True
    strict_readiness: bool = True
    exit_timeout: int = 30
    buffer_manager_thread_count: int = 0
    model_load_thread_count: int = 4
    model_load_retry_count: int = 0
    model_namespacing: bool = False
    enable_peer_access: bool = True
    log_file: str | None = None
    log_info: bool = False
    log_warn: bool = False
    log_error: bool = False
    log_format: LogFormat = LogFormat.DEFAULT
    log_verbose: int = 0
    metrics: bool = True
    gpu_metrics: bool = True
    cpu_metrics: bool = True
    metrics_interval: int = 2000
    backend_directory: str = "/opt/tritonserver/backends"
    repo_agent_directory: str = "/opt/tritonserver/repoagents"
    model_load_device_limits: list[ModelLoadDeviceLimit] = field(default_factory=list)
    backend_configuration: dict[str, dict[str, str]] = field(default_factory=dict)
    host_policies: dict[str, dict[str, str]] = field(default_factory=dict)
    metrics_configuration: dict[str, dict[str, str]] = field(default_factory=dict)
    log_callback: LogCallback | None = None

    def _repositories(self) -> list[str]:
        """Return the paths of the repositories. Raises InvalidArgumentError without one, TypeError."""
        given = self.model_repository
        if given is None or given == []:
            raise InvalidArgumentError(
                "model_repository must be specified: a path, or a list of paths"
            )
        paths = given if isinstance(given, list | tuple) else [given]
        for each in paths:
            if not isinstance(each, str | os.PathLike):
                raise TypeError(f"model_repository={given!r}: give a path, or a list of paths")
        return [os.fspath(each) for each in paths]

    def _check_types(self) -> None:
        """Raise TypeError for a value of another type than the default has."""
        for name, wanted in _TYPES.items():
            value = getattr(self, name)
            if not isinstance(value, wanted):
                raise TypeError(
                    f"{name}={value!r} is a {type(value).__name__}, expected {wanted[0].__name__}"
                )

    def _as_core(self) -> dict[str, Any]:
        """Return the arguments of core.Server, without those of repositories. Raises TypeError."""
        self._check_types()
        polls = self.model_control_mode is ModelControlMode.POLL
        return {
            "id": self.server_id,
            "model_control_mode": self.model_control_mode.name.lower(),
            "load_model": self.startup_models,
            "repository_poll_secs": _NEVER_S if polls else 15,
            "disable_auto_complete_config": self.strict_model_config,
            "rate_limit": "off"
            if self.rate_limiter_mode is RateLimitMode.OFF
            else "execution_count",
            "rate_limit_resource": [_resource(each) for each in self.rate_limiter_resources],
            "pinned_memory_pool_byte_size": self.pinned_memory_pool_size,
            "cuda_memory_pool_byte_size": [
                f"{device}:{size}" for device, size in self.cuda_memory_pool_sizes.items()
            ],
            "cache_config": _settings(self.cache_config),
            "cache_directory": self.cache_directory,
            "min_supported_compute_capability": float(self.min_supported_compute_capability),
            "exit_on_error": self.exit_on_error,
            "strict_readiness": self.strict_readiness,
            "exit_timeout_secs": self.exit_timeout,
            "buffer_manager_thread_count": self.buffer_manager_thread_count,
            "model_load_thread_count": self.model_load_thread_count,
            "model_load_retry_count": self.model_load_retry_count,
            "model_namespacing": self.model_namespacing,
            "enable_peer_access": self.enable_peer_access,
            "allow_metrics": self.metrics,
            "allow_gpu_metrics": self.gpu_metrics,
            "allow_cpu_metrics": self.cpu_metrics,
            "metrics_interval_ms": float(self.metrics_interval),
            "backend_directory": self.backend_directory,
            "repoagent_directory": self.repo_agent_directory,
            "model_load_gpu_limit": [
                f"{each.device}:{each.fraction}" for each in self.model_load_device_limits
            ],
            "backend_config": _settings(self.backend_configuration),
            "host_policy": _settings(self.host_policies),
            "metrics_config": [
                f"{name}={value}"
                for settings in self.metrics_configuration.values()
                for name, value in settings.items()
            ],
            **self._log(),
        }

    def _log(self) -> dict[str, Any]:
        """Return the options of the log; none if no level is on, so that the program's logging stays."""
        info = self.log_info or self.log_verbose > 0
        warning = self.log_warn or info
        if not (self.log_error or warning or self.log_file):
            return {}
        form = "default" if self.log_format is LogFormat.DEFAULT else "ISO8601"
        return {
            "log_verbose": int(self.log_verbose),
            "log_info": info,
            "log_warning": warning,
            "log_error": self.log_error or warning,
            "log_format": form,
            "log_file": self.log_file or "",
        }


_MORE_TYPES: dict[type, tuple[type, ...]] = {float: (int,), bool: (int,), list: (tuple,)}
_TYPES: dict[str, tuple[type, ...]] = {
    name: (type(default), *_MORE_TYPES.get(type(default), ()))
    for name, default in vars(Options()).items()
    if default is not None and name != "model_repository"
}


def _settings(given: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return {"local": {"size": 1}} as the texts of a flag: ["local,size=1"]."""
    return [
        f"{name},{setting}={value}" if name else f"{setting}={value}"
        for name, settings in given.items()
        for setting, value in settings.items()
    ]


def _resource(given: RateLimiterResource) -> str:
    device = f":{given.device}" if given.device >= 0 else ""
    return f"{given.name}:{given.count}{device}"


def has_url(paths: Iterable[str]) -> bool:
    """Return whether one of the repositories is a URL, which a plugin opens."""
    return any("://" in each for each in paths)
