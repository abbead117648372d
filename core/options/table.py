"""Options: every flag of the server, once.

This class is the table: the name of a field is the name of its flag with underscores, its annotation
the type, and the call beside it says form, default and meaning. `--help` and docs/options.md are
made of it.
"""

# ruff: noqa: RUF009  the calls beside the fields are dataclasses.field() with the rest of the row

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from typing import Any

from core.options import platforms
from core.options.values import (
    AMOUNT,
    BOOL,
    FLOAT,
    LISTED,
    MODE,
    NAMES,
    NUMBERS,
    PATTERN,
    PORT,
    PORT_RANGE,
    RESOURCES,
    RESTRICTED_CATEGORIES,
    SETTING,
    STRING,
    SWITCH,
    TRACE,
    VERBOSITY,
    Form,
    choice,
    device_pair,
    grouped,
    integer,
    read_float,
    read_int,
    restricted,
    settings,
    some_of,
)


def _group(title: str) -> Callable[..., Any]:
    """The flags below one heading of --help.

    A flag's `idle` says why it has no effect here; such a flag is accepted and named once in the log. A
    flag of a plugin may take its place.
    """

    def flag(form: Form, default: Any, text: str, *, idle: str = "") -> Any:
        def fresh() -> Any:
            return default() if callable(default) else copy.copy(default)

        metadata = {"group": title, "form": form, "help": text, "idle": idle}
        return field(default_factory=fresh, metadata=metadata)

    return flag


_server = _group("Server")
_logging = _group("Logging")
_models = _group("Model Repository")
_http = _group("HTTP")
_grpc = _group("GRPC")
_sagemaker = _group("Sagemaker")
_vertex = _group("Vertex")
_metrics = _group("Metrics")
_tracing = _group("Tracing")
_backend = _group("Backend")
_agent = _group("Repository Agent")
_cache = _group("Response Cache")
_rate = _group("Rate Limiter")
_memory = _group("Memory/Device Management")
_security = _group("Security")

_ONE_LOOP = "one event loop serves all connections"


@dataclass(kw_only=True)
class Options:
    """All settings of one server. Not changed after the start.

    added      values of the flags that plugins have added, by name with underscores
    hardened   what --secure has done, for the log
    """

    # fmt: off
    id: str = _server(STRING, "triton", "Name of the server in its metadata.")
    exit_timeout_secs: int = _server(integer(), 30,
        "Seconds that the server waits for running requests when it ends.")
    early_refusal: bool = _server(BOOL, True,
        "Refuse a request at once if it cannot meet its deadline because of the queue (docs/deadlines.md).")
    workers: int = _server(integer(1, 1024), 1,
        "Number of processes that act as one server. Each has its own event loop and its own copy of all "
        "models (docs/workers.md).")

    unix_socket_mode: str = _server(MODE, "0600",
        "Permissions of the Unix domain sockets on which the server listens.")

    log_verbose: int = _logging(VERBOSITY, 0, "Level of verbose messages. 0 disables them.")
    log_info: bool = _logging(BOOL, True, "Log messages of level info.")
    log_warning: bool = _logging(BOOL, True, "Log warnings.")
    log_error: bool = _logging(BOOL, True, "Log errors.")
    log_format: str = _logging(choice("default", "ISO8601"), "default",
        'Begin lines with "default" (LMMDD hh:mm:ss.ssssss) or '
        '"ISO8601" (YYYY-MM-DDThh:mm:ssZ L).')
    log_file: str = _logging(STRING, "",
        "Append the log to this file instead of writing it to the console.")
    access_log: str = _logging(STRING, "",
        "Append a line of JSON to this file for each request; - writes to standard output (docs/logging.md).")
    access_log_rate: int = _logging(integer(1), 1,
        "Log one of N requests to the access log, and every request that fails.")

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
        "Permit GPUs to read each other's memory.",
        idle="frameworks decide about peer access themselves")

    allow_http: bool = _http(BOOL, platforms.elsewhere,
        "Serve HTTP. The default is false if AIP_MODE=PREDICTION.")
    http_address: str = _http(STRING, "0.0.0.0",
        "Address of HTTP; unix:/path is a Unix domain socket, without a port.")
    http_port: int = _http(PORT, 8000, "Port of HTTP.")
    reuse_http_port: bool = _http(BOOL, False,
        "Permit several servers to share the port of HTTP.")
    http_header_forward_pattern: str = _http(PATTERN, "",
        "Forward headers whose names match this regular expression as parameters of the request.")
    http_thread_count: int = _http(integer(1), 8, "Threads that handle HTTP.", idle=_ONE_LOOP)
    http_lane: str = _http(choice("auto", "aiohttp"), "auto",
        "auto reads common requests on a fast path; aiohttp reads all requests with aiohttp.")
    http_max_input_size: int = _http(integer(1), 64 * 2**20,
        "Largest body of a request in bytes, before and after decompression.")
    http_max_body_size: int = _http(integer(1, 2**31 - 1), 2**31 - 1,
        "Largest body in bytes of a request with binary tensors.")
    http_max_connections: int = _http(integer(), 0,
        "Largest number of connections; others get status 503. 0: as many as open files permit.")
    http_header_timeout_secs: int = _http(integer(), 60,
        "Seconds between the first byte of a request and the end of its headers. 0: no limit.")
    http_body_timeout_secs: int = _http(integer(), 60,
        "Seconds in which 64 KiB of a body, or its rest, must arrive. 0: no limit.")
    http_body_byte_rate: int = _http(integer(), 65536,
        "Slowest rate of a body in bytes per second: a body of n bytes may take --http-body-timeout-secs "
        "plus n / rate seconds. 0: no limit.")
    http_answer_timeout_secs: int = _http(integer(0, 2_000_000), 300,
        "Seconds in which a client must read something of its response. 0: no limit.")
    http_use_ssl: bool = _http(BOOL, False, "Serve HTTP over TLS.")
    http_use_ssl_mutual: bool = _http(BOOL, False,
        "Require a certificate of each client; implies --http-use-ssl.")
    http_server_cert: str = _http(STRING, "", "PEM file with the server's certificate.")
    http_server_key: str = _http(STRING, "", "PEM file with the server's key.")
    http_root_cert: str = _http(STRING, "",
        "PEM file with the certificates that verify those of clients.")
    http_restricted_api: dict[str, tuple[str, str]] = _http(restricted("api", "metrics"), {},
        "Kinds of requests that require the header <key> with <value>.")

    allow_grpc: bool = _grpc(BOOL, platforms.elsewhere,
        "Serve gRPC. The default is false if AIP_MODE=PREDICTION.")
    grpc_address: str = _grpc(STRING, "0.0.0.0",
        "Address of gRPC; unix:/path is a Unix domain socket, without a port.")
    grpc_port: int = _grpc(PORT, 8001, "Port of gRPC.")
    grpc_engine: str = _grpc(choice("auto", "native", "grpcio"), "auto",
        "Implementation of HTTP/2: native (libnghttp2) is faster, grpcio is always available. auto uses "
        "native if it was built.")
    reuse_grpc_port: bool = _grpc(BOOL, False,
        "Permit several servers to share the port of gRPC.")
    grpc_header_forward_pattern: str = _grpc(PATTERN, "",
        "Forward metadata whose keys match this regular expression as parameters of the request.")
    grpc_infer_thread_count: int = _grpc(integer(2, 128), 2,
        "Threads that handle inference requests.", idle=_ONE_LOOP)
    grpc_infer_allocation_pool_size: int = _grpc(integer(), 8,
        "Request objects that are kept for reuse.", idle="memory of requests is not pooled")
    grpc_max_response_pool_size: int = _grpc(integer(1), 2**31 - 1,
        "Response objects that are kept for reuse.", idle="memory of responses is not pooled")
    grpc_max_message_size: int = _grpc(integer(1, 2**31 - 1), 2**31 - 1,
        "Largest message of a client in bytes, before and after decompression.")
    grpc_message_timeout_secs: int = _grpc(integer(), 60,
        "Seconds in which a message must arrive, plus one second for each 64 KiB that arrived. 0: no limit. "
        "Not with --grpc-engine=grpcio.")
    grpc_max_concurrent_streams: int = _grpc(integer(1, 2**31 - 1), 4096,
        "Largest number of simultaneous calls of one connection; clients queue more.")
    grpc_max_connections: int = _grpc(integer(), 0,
        "Largest number of connections; others are closed. 0: as many as open files permit. "
        "Not with --grpc-engine=grpcio.")
    grpc_use_ssl: bool = _grpc(BOOL, False, "Serve gRPC over TLS.")
    grpc_use_ssl_mutual: bool = _grpc(BOOL, False,
        "Require a certificate of each client; implies --grpc-use-ssl.")
    grpc_server_cert: str = _grpc(STRING, "", "PEM file with the server's certificate.")
    grpc_server_key: str = _grpc(STRING, "", "PEM file with the server's key.")
    grpc_root_cert: str = _grpc(STRING, "",
        "PEM file with the certificates that verify those of clients.")
    grpc_infer_response_compression_level: str = _grpc(choice("none", "low", "medium", "high"), "none",
        "Compression of inference responses.")
    grpc_keepalive_time: int = _grpc(integer(1), 7_200_000,
        "Milliseconds without traffic until the server sends a ping.")
    grpc_keepalive_timeout: int = _grpc(integer(1), 20_000,
        "Milliseconds that the server waits for the response to a ping.")
    grpc_keepalive_permit_without_calls: bool = _grpc(BOOL, False,
        "Send pings also while no call runs.")
    grpc_http2_max_pings_without_data: int = _grpc(integer(), 2,
        "Largest number of pings without data between them. 0: no limit.")
    grpc_http2_min_recv_ping_interval_without_data: int = _grpc(integer(), 300_000,
        "Milliseconds between two pings of a client without data; earlier pings count as strikes.")
    grpc_http2_max_ping_strikes: int = _grpc(integer(), 2,
        "Number of strikes that closes a connection. 0: no limit.")
    grpc_max_connection_age: int = _grpc(integer(), 0,
        "Milliseconds after which a connection is closed. 0: never.")
    grpc_max_connection_age_grace: int = _grpc(integer(), 0,
        "Milliseconds that running calls have when their connection reaches that age. 0: no limit.")
    grpc_restricted_protocol: dict[str, tuple[str, str]] = _grpc(restricted("protocol"), {},
        "Kinds of calls that require the metadata triton-grpc-protocol-<key> with <value>.")

    allow_sagemaker: bool = _sagemaker(BOOL, False,
        "Serve the endpoints of Amazon SageMaker (docs/platforms.md).")
    sagemaker_port: int = _sagemaker(PORT, 8080,
        "Port of SageMaker's endpoints.")
    sagemaker_safe_port_range: tuple[int, int] | None = _sagemaker(PORT_RANGE, None,
        "Ports that the other frontends may use beside SageMaker's.")
    sagemaker_thread_count: int = _sagemaker(integer(1), 8,
        "Threads that handle SageMaker's requests.", idle=_ONE_LOOP)

    allow_vertex_ai: bool = _vertex(BOOL, platforms.on_vertex_ai,
        "Serve the endpoints of Vertex AI (docs/platforms.md). The default is true if AIP_MODE=PREDICTION.")
    vertex_ai_port: int = _vertex(PORT, platforms.port,
        "Port of Vertex AI's endpoints. AIP_HTTP_PORT sets the default.")
    vertex_ai_thread_count: int = _vertex(integer(1), 8,
        "Threads that handle Vertex AI's requests.", idle=_ONE_LOOP)
    vertex_ai_default_model: str = _vertex(STRING, "",
        "Model for Vertex AI's requests without a model name; by default the only model that serves.")

    allow_metrics: bool = _metrics(BOOL, True, "Serve metrics.")
    allow_gpu_metrics: bool = _metrics(BOOL, True, "Include GPUs in the metrics.",
        idle="core itself has no metrics of GPUs, a plugin brings them (docs/metrics.md)")
    allow_cpu_metrics: bool = _metrics(BOOL, True,
        "Include CPU and memory of the machine in the metrics.")
    metrics_address: str = _metrics(STRING, "",
        "Address of the metrics; by default --http-address, or 127.0.0.1 if that is a Unix domain socket.")
    metrics_port: int = _metrics(PORT, 8002, "Port of metrics.")
    metrics_interval_ms: float = _metrics(FLOAT, 2000.0,
        "Shortest time in milliseconds between two measurements of CPU, memory and GPUs.")
    metrics_use_ssl: bool = _metrics(BOOL, False,
        "Serve metrics over TLS, with the certificates of HTTP.")
    metrics_config: dict[str, str] = _metrics(SETTING, {},
        "Setting of the metrics: counter_latencies=false, histogram_latencies=true, summary_latencies=true "
        "or summary_quantiles=<quantile>:<error>,… (docs/metrics.md).")

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
        "Size of the pool of pinned memory.", idle="there is no pool of pinned memory")
    cuda_memory_pool_byte_size: dict[int, int] = _memory(device_pair("<integer>", read_int), {},
        "Size of the pool of a GPU.", idle="there is no pool of GPU memory")
    cuda_virtual_address_size: dict[int, int] = _memory(device_pair("<integer>", read_int), {},
        "Most memory of one growable state on a GPU.", idle="there are no growable states")
    min_supported_compute_capability: float = _memory(FLOAT, 6.0,
        "Oldest GPUs that are used.", idle="backends choose the GPUs that they can use")
    buffer_manager_thread_count: int = _memory(integer(), 0,
        "Threads that copy tensors.", idle="tensors are copied by the thread that needs them")
    host_policy: dict[str, dict[str, str]] = _memory(settings("policy", owner_needed=True), {},
        "CPU cores (cpu-cores=<lower>-<upper>) or NUMA node (numa-node=<number>) for instances with a host "
        "policy.")
    model_load_gpu_limit: dict[int, float] = _memory(device_pair("<fraction>", read_float), {},
        "Share of a GPU's memory above which no model is loaded.",
        idle="memory of GPUs is not watched")
    request_memory_byte_size: int = _memory(integer(), 0,
        "Largest size in bytes of the requests and responses of all connections together. 0: half of the "
        "memory of the machine or container. One connection may hold as many bytes as are free. Workers "
        "divide it.")
    unpaid_memory_byte_size: int = _memory(integer(), 48 * 2**20,
        "Largest size in bytes of decompressed data beyond the limit that the compressed sizes permit "
        "(docs/limits.md). Workers divide it.")
    allow_client_shm: bool = _memory(BOOL, False,
        "Permit clients to register shared memory by its name. Trusted clients only: each can register the "
        "memory of others (docs/shared-memory.md).")
    shared_memory_socket: str = _memory(STRING, "",
        "Path of a Unix domain socket on which clients send descriptors of shared memory. It is released "
        "when they disconnect (docs/shared-memory.md).")
    shared_memory_socket_uid: list[int] = _memory(NUMBERS, [],
        "User that may use --shared-memory-socket, in addition to the server's user and root.")

    secure: bool = _security(SWITCH, False,
        "Use secure defaults: identified callers only, no changes of the server, other machines only over "
        "TLS (docs/security.md).")
    secure_without_tls: bool = _security(SWITCH, False,
        "With --secure, serve other machines without TLS, for example behind a proxy with TLS.")
    auth_tokens: str = _security(STRING, "",
        "File with the hashes of tokens and the names of callers; `python -m core token` makes its lines.")
    auth_jwks: str = _security(STRING, "",
        "File with the public keys (JWK set) of the issuer of JWT. Needs core[jwt].")
    auth_jwt_issuer: str = _security(STRING, "", "Required claim iss of a JWT.")
    auth_jwt_audience: str = _security(STRING, "", "Required element of the claim aud of a JWT.")
    auth_jwt_algorithms: tuple[str, ...] = _security(LISTED, ("RS256", "PS256", "ES256", "EdDSA"),
        "Permitted signature algorithms of a JWT, separated by commas.")
    auth_jwt_leeway_secs: int = _security(integer(0, 3600), 30,
        "Permitted difference in seconds from the clock of the issuer of JWT.")
    auth_jwt_roles_claim: str = _security(STRING, "roles",
        "Claim of a JWT with the caller's roles, such as scope or realm_access.roles.")
    auth_jwt_role: dict[str, tuple[str, ...]] = _security(
        grouped(("infer", "read", "manage")), {},
        "Value in that claim that stands for a role; by default the values are the roles.")
    auth_open: tuple[str, ...] = _security(some_of((*RESTRICTED_CATEGORIES, "metrics")), ("health",),
        "Kinds of requests that need no token, separated by commas; none for no kind.")
    limit_rate: float = _security(AMOUNT, 0.0,
        "Requests per second of a caller. 0: no limit. --auth-tokens may set other limits. Without a token "
        "a caller is identified by its address.")
    limit_burst: float = _security(AMOUNT, 0.0,
        "Requests that a caller may send at once after a pause. 0: those of one second.")
    limit_concurrency: int = _security(integer(), 0,
        "Simultaneous requests of a caller. 0: no limit.")
    allow_remote_settings: bool = _security(BOOL, True,
        "Permit clients to change settings of log and traces.")
    reload_secs: float = _security(AMOUNT, 10.0,
        "Seconds between two checks of certificates, tokens and keys for changes. 0: check on SIGHUP only.")
    # fmt: on
    hardened: tuple[str, ...] = ()
    added: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unix = self.http_address.startswith("unix:")
        self.metrics_address = self.metrics_address or ("127.0.0.1" if unix else self.http_address)

    @classmethod
    def defaults(cls, **changes: Any) -> Options:
        """Every option at its default but for `changes`, named with underscores."""
        return cls(**changes)


@dataclass(frozen=True)
class Flag:
    """One row of the table, as the command line knows it.

    name      without the dashes in front
    field     name of the field of Options
    default   the value when the flag is not given
    idle      why the flag has no effect; "" if it has one
    """

    name: str
    field: str
    group: str
    form: Form
    default: Any
    help: str
    idle: str


def _flag(row: Field[Any]) -> Flag:
    assert callable(row.default_factory)
    return Flag(
        name=row.name.replace("_", "-"),
        field=row.name,
        default=row.default_factory(),
        **row.metadata,
    )


FLAGS: tuple[Flag, ...] = tuple(_flag(row) for row in fields(Options) if row.metadata)


def idle_flags(options: Options) -> list[Flag]:
    """The flags that were given another value than their default and have no effect."""
    return [flag for flag in FLAGS if flag.idle and getattr(options, flag.field) != flag.default]
