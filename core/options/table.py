"""Options: the flags of core, and the values of all other flags.

Other parts of the server have sections of their own (core/options/section.py): a frontend declares its flags
where it reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from core.options.section import Flag, Listener, Section, flags_of, group
from core.options.values import (
    BOOL,
    FLOAT,
    NAMES,
    RESOURCES,
    SETTING,
    STRING,
    SWITCH,
    TRACE,
    VERBOSITY,
    choice,
    device_pair,
    integer,
    read_float,
    read_int,
    settings,
)

_server = group("Server")
_logging = group("Logging")
_models = group("Model Repository")
_metrics = group("Metrics")
_tracing = group("Tracing")
_backend = group("Backend")
_agent = group("Repository Agent")
_cache = group("Response Cache")
_rate = group("Rate Limiter")
_memory = group("Memory/Device Management")
_security = group("Security")
_PLUGIN = "a plugin brings it (docs/operate/gpus.md)"


@dataclass(kw_only=True)
class Options:
    """All settings of one server. They do not change after the start.

    added      name of a flag of another part or a plugin, with underscores → value
    parts      registered sections
    sections   cache of `Section.of`: type of a section → its values
    notes      changes that the sections made to options, as lines for the log
    """

    # fmt: off
    id: str = _server(STRING, "triton", "Name of the server in its metadata.")
    exit_timeout_secs: int = _server(integer(), 30,
        "Seconds that the server waits for running requests when it ends.")
    early_refusal: bool = _server(BOOL, True,
        "Refuse a request at once if the queue is too long for its deadline (docs/serve/deadlines.md).")
    workers: int = _server(integer(1, 1024), 1,
        "Number of processes that act as one server. Each has its own event loop and its own copy of all "
        "models (docs/operate/workers.md).")

    log_verbose: int = _logging(VERBOSITY, 0, "Level of verbose messages. 0 disables them.")
    log_info: bool = _logging(BOOL, True, "Log messages of level info.")
    log_warning: bool = _logging(BOOL, True, "Log warnings.")
    log_error: bool = _logging(BOOL, True, "Log errors.")
    log_format: str = _logging(choice("default", "ISO8601"), "default",
        'Begin lines with "default" (LMMDD hh:mm:ss.ssssss) or '
        '"ISO8601" (YYYY-MM-DDThh:mm:ssZ L).')
    log_file: str = _logging(STRING, "",
        "Append the log to this file instead of writing it to the console.")

    model_repository: list[str] = _models(NAMES, [],
        "Folder with one folder per model, or a URL that a plugin opens, such as s3://bucket/path. "
        "A model in two repositories is not available.")
    exit_on_error: bool = _models(BOOL, True,
        "End the server if a model fails to load at the start.")
    disable_auto_complete_config: bool = _models(SWITCH, False,
        "Do not complete configurations from model files. Each model needs a config.pbtxt.")
    strict_readiness: bool = _models(BOOL, True,
        "The server is ready only if all models are ready.")
    model_control_mode: str = _models(choice("none", "poll", "explicit"), "none",
        '"none" loads all models at the start. "poll" follows changes of the repositories. '
        '"explicit" loads the models that --load-model and load requests name.')
    repository_poll_secs: int = _models(integer(), 15,
        "Polling interval in seconds, in mode poll.")
    load_model: list[str] = _models(NAMES, [],
        "Model to load at the start, in mode explicit. * alone loads all models.")
    model_config_name: str = _models(STRING, "",
        "Use configs/<name>.pbtxt of a model instead of config.pbtxt, if it exists.")
    model_load_thread_count: int = _models(integer(1), 4,
        "Number of model versions that load at the same time.")
    model_load_retry_count: int = _models(integer(), 0,
        "Number of retries of a load that failed.")
    model_override_max_byte_size: int = _models(integer(), 4 << 30,
        "Largest total size in bytes of the files of load requests whose models are loaded.")
    model_namespacing: bool = _models(BOOL, False,
        "Permit models with the same name in several repositories.")
    enable_peer_access: bool = _models(BOOL, True,
        "Permit GPUs to read each other's memory.", idle=_PLUGIN)

    allow_metrics: bool = _metrics(BOOL, True, "Serve metrics.")
    allow_gpu_metrics: bool = _metrics(BOOL, True, "Include GPUs in the metrics.",
        idle="core itself has no metrics of GPUs, a plugin brings them (docs/operate/metrics.md)")
    allow_cpu_metrics: bool = _metrics(BOOL, True,
        "Include CPU and memory of the machine in the metrics.")
    metrics_interval_ms: float = _metrics(FLOAT, 2000.0,
        "Shortest time in milliseconds between two measurements of CPU, memory and GPUs.")
    metrics_config: dict[str, str] = _metrics(SETTING, {},
        "Setting of the metrics: counter_latencies=false, histogram_latencies=true, summary_latencies=true "
        "or summary_quantiles=<quantile>:<error>,… (docs/operate/metrics.md).")

    trace_config: dict[str, list[tuple[str, str]]] = _tracing(TRACE, {},
        "Setting of tracing, for mode triton, for the mode of a plugin, or without a mode for all.")

    backend_directory: str = _backend(STRING, "/opt/tritonserver/backends",
        "Folder with backends that consist of a model.py, one folder each. Packages take precedence.")
    backend_config: dict[str, dict[str, str]] = _backend(settings("backend"), {},
        "Setting of a backend, or without a name of all backends.")

    repoagent_directory: str = _agent(STRING, "/opt/tritonserver/repoagents",
        "Folder with repository agents that consist of an agent.py, one folder each. Plugins and built-in "
        "agents take precedence.")

    cache_config: dict[str, dict[str, str]] = _cache(settings("cache", owner_needed=True), {},
        "Setting of the response cache, such as local,size=1048576; plugins bring other caches.")
    cache_directory: str = _cache(STRING, "/opt/tritonserver/caches",
        "Folder of response caches.", idle="the cache is part of the server")

    rate_limit: str = _rate(choice("execution_count", "off"), "off",
        "execution_count limits executions by the resources of their instances.")
    rate_limit_resource: dict[str, dict[int, int]] = _rate(RESOURCES, {},
        "Amount of a resource, on one device or on each.")

    pinned_memory_pool_byte_size: int = _memory(integer(), 256 * 2**20,
        "Size of the pool of pinned memory.", idle=_PLUGIN)
    cuda_memory_pool_byte_size: dict[int, int] = _memory(device_pair("<integer>", read_int), {},
        "Size of the pool of a GPU.", idle=_PLUGIN)
    cuda_virtual_address_size: dict[int, int] = _memory(device_pair("<integer>", read_int), {},
        "Most memory of one growable state on a GPU.", idle=_PLUGIN)
    min_supported_compute_capability: float = _memory(FLOAT, 6.0,
        "Oldest GPUs that are used.", idle=_PLUGIN)
    buffer_manager_thread_count: int = _memory(integer(), 0,
        "Threads that copy tensors.", idle="tensors are copied by the thread that needs them")
    host_policy: dict[str, dict[str, str]] = _memory(settings("policy", owner_needed=True), {},
        "CPU cores (cpu-cores=<lower>-<upper>) or NUMA node (numa-node=<number>) for instances with a host "
        "policy.")
    model_load_gpu_limit: dict[int, float] = _memory(device_pair("<fraction>", read_float), {},
        "Share of a GPU's memory above which no model is loaded.", idle=_PLUGIN)
    request_memory_byte_size: int = _memory(integer(), 0,
        "Largest size in bytes of the requests and responses of all connections together. 0: half of the "
        "memory of the machine or container. One connection may hold as many bytes as are free. Workers "
        "divide it.")
    unpaid_memory_byte_size: int = _memory(integer(), 48 * 2**20,
        "Largest size in bytes of decompressed data beyond the limit that the compressed sizes permit "
        "(docs/operate/limits.md). Workers divide it.")
    allow_client_shm: bool = _memory(BOOL, False,
        "Permit clients to register shared memory by its name. Trusted clients only: each can register the "
        "memory of others (docs/serve/shared-memory.md).")

    allow_remote_settings: bool = _security(BOOL, True,
        "Permit clients to change settings of log and traces.")
    # fmt: on
    added: dict[str, Any] = field(default_factory=dict)
    parts: tuple[type[Section], ...] = ()
    sections: dict[type[Section], Any] = field(default_factory=dict, compare=False, repr=False)
    notes: tuple[str, ...] = ()

    @classmethod
    def defaults(cls, *parts: Section, **changes: Any) -> Options:
        """Return options with their default values, except `changes`, named with underscores.

        parts   sections whose values are used instead of the defaults
        """
        added = {
            flag.field: getattr(each, flag.field) for each in parts for flag in flags_of(type(each))
        }
        return cls(added=added, parts=tuple(map(type, parts))).changed(**changes)

    def changed(self, **changes: Any) -> Options:
        """Return a copy with other values of flags of core or any part, named with underscores."""
        own = {name: changes.pop(name) for name in (_OWN - self.added.keys()) & changes.keys()}
        return replace(self, **own, added={**self.added, **changes}, sections={})

    def value(self, name: str, default: Any = None) -> Any:
        """Return the value of any flag, named with underscores, before `Section.resolve`; else `default`."""
        return self.added.get(name, getattr(self, name, default))

    def listeners(self) -> list[Listener]:
        """Return all listeners of the server."""
        return [each for part in self.parts for each in part.of(self).listeners(self)]


_OWN = {flag.field for flag in flags_of(Options)}


def idle_flags(options: Options) -> list[Flag]:
    """Return the flags without effect whose value differs from the default."""
    sections = (options, *(part.of(options) for part in options.parts))
    return [
        flag
        for section in sections
        for flag in flags_of(type(section))
        if flag.idle and getattr(section, flag.field) != flag.default
    ]
