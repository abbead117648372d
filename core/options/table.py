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
        "Longest time in seconds that the end waits for what is in flight.")
    early_refusal: bool = _server(BOOL, True,
        "Refuse a request with a deadline at once when it would wait clearly longer for an instance; "
        "docs/deadlines.md says when.")
    workers: int = _server(integer(1, 1024), 1,
        "Processes that share the ports and answer as one server, each with its own event loop and "
        "its own copy of all models; docs/workers.md says when.")

    unix_socket_mode: str = _server(MODE, "0600",
        "Permissions of the Unix domain sockets that the server listens at: who may connect.")

    log_verbose: int = _logging(VERBOSITY, 0, "Level of verbose messages; 0 turns them off.")
    log_info: bool = _logging(BOOL, True, "Whether messages of level info are written.")
    log_warning: bool = _logging(BOOL, True, "Whether warnings are written.")
    log_error: bool = _logging(BOOL, True, "Whether errors are written.")
    log_format: str = _logging(choice("default", "ISO8601"), "default",
        'How a line begins: "default" (LMMDD hh:mm:ss.ssssss) or '
        '"ISO8601" (YYYY-MM-DDThh:mm:ssZ L).')
    log_file: str = _logging(STRING, "",
        "File that the log is appended to, instead of the console.")
    access_log: str = _logging(STRING, "",
        "File that a line of JSON is appended to for every request, - for standard output; "
        "docs/logging.md says what is in it.")
    access_log_rate: int = _logging(integer(1), 1,
        "One of so many requests is written to the access log; those that fail always are.")

    model_repository: list[str] = _models(NAMES, [],
        "Folder that holds a folder for each model, or a URL that a plugin opens, such as s3://bucket/path. "
        "A model that is in two repositories is not available.")
    exit_on_error: bool = _models(BOOL, True,
        "Whether the server ends when a model fails to load at the start.")
    disable_auto_complete_config: bool = _models(SWITCH, False,
        "Take configurations as they are: nothing is filled in from model files, and each model "
        "needs a config.pbtxt.")
    strict_readiness: bool = _models(BOOL, True,
        "Whether the server counts as ready only when all models are.")
    model_control_mode: str = _models(choice("none", "poll", "explicit"), "none",
        '"none" loads all models at the start, "poll" follows changes of the repositories, '
        '"explicit" loads what --load-model and load requests name.')
    repository_poll_secs: int = _models(integer(), 15,
        "Seconds between two looks at the repositories, in mode poll.")
    load_model: list[str] = _models(NAMES, [],
        "Model to load at the start, in mode explicit; * alone means all.")
    model_config_name: str = _models(STRING, "",
        "Use configs/<name>.pbtxt of a model, where it exists, instead of config.pbtxt.")
    model_load_thread_count: int = _models(integer(1), 4,
        "How many model versions load at the same time.")
    model_load_retry_count: int = _models(integer(), 0,
        "How often a load that failed is tried again.")
    model_override_max_byte_size: int = _models(integer(), 4 << 30,
        "Bytes that the files of load requests may take together, as long as their models are loaded.")
    model_namespacing: bool = _models(BOOL, False,
        "Whether several repositories may hold a model of one name.")
    enable_peer_access: bool = _models(BOOL, True,
        "Whether GPUs may read each other's memory.",
        idle="frameworks decide about peer access themselves")

    allow_http: bool = _http(BOOL, platforms.elsewhere,
        "Whether HTTP is served; false if AIP_MODE=PREDICTION.")
    http_address: str = _http(STRING, "0.0.0.0",
        "Address that HTTP listens on; unix:/path for a Unix domain socket, without a port.")
    http_port: int = _http(PORT, 8000, "Port of HTTP.")
    reuse_http_port: bool = _http(BOOL, False,
        "Whether several servers may share the port of HTTP.")
    http_header_forward_pattern: str = _http(PATTERN, "",
        "Headers whose names match this regular expression become parameters of the request.")
    http_thread_count: int = _http(integer(1), 8, "Threads that handle HTTP.", idle=_ONE_LOOP)
    http_lane: str = _http(choice("auto", "aiohttp"), "auto",
        "Which code reads requests: auto for the fastest that can, aiohttp for one that reads all.")
    http_max_input_size: int = _http(integer(1), 64 * 2**20,
        "Largest body of a request, in bytes, also after decompression.")
    http_max_body_size: int = _http(integer(1, 2**31 - 1), 2**31 - 1,
        "Largest body of a request with binary tensors, in bytes.")
    http_max_connections: int = _http(integer(), 0,
        "Connections of HTTP at a time; others are answered 503. 0 for what open files allow.")
    http_header_timeout_secs: int = _http(integer(), 60,
        "Longest time in seconds between the first byte of a request and the end of its headers; "
        "0 for any.")
    http_body_timeout_secs: int = _http(integer(), 60,
        "Time in seconds in which 64 KiB of a body, or the rest of it, must come; 0 for any.")
    http_body_byte_rate: int = _http(integer(), 65536,
        "Bytes per second at which a body must come once --http-body-timeout-secs have passed: a body of n "
        "bytes has that time and n / rate seconds; 0 for any rate.")
    http_answer_timeout_secs: int = _http(integer(0, 2_000_000), 300,
        "Longest time in seconds in which a client takes nothing of its answer; 0 for any.")
    http_use_ssl: bool = _http(BOOL, False, "Whether HTTP is served over TLS.")
    http_use_ssl_mutual: bool = _http(BOOL, False,
        "Whether clients must show a certificate; includes --http-use-ssl.")
    http_server_cert: str = _http(STRING, "", "PEM file with the server's certificate.")
    http_server_key: str = _http(STRING, "", "PEM file with the server's key.")
    http_root_cert: str = _http(STRING, "",
        "PEM file with the certificates that clients' certificates are checked against.")
    http_restricted_api: dict[str, tuple[str, str]] = _http(restricted("api", "metrics"), {},
        "Kinds of requests that need a header: <key> must come with <value>.")

    allow_grpc: bool = _grpc(BOOL, platforms.elsewhere,
        "Whether gRPC is served; false if AIP_MODE=PREDICTION.")
    grpc_address: str = _grpc(STRING, "0.0.0.0",
        "Address that gRPC listens on; unix:/path for a Unix domain socket, without a port.")
    grpc_port: int = _grpc(PORT, 8001, "Port of gRPC.")
    grpc_engine: str = _grpc(choice("auto", "native", "grpcio"), "auto",
        "What speaks HTTP/2: native (on libnghttp2) is faster, grpcio is always there; auto takes "
        "native where it was built.")
    reuse_grpc_port: bool = _grpc(BOOL, False,
        "Whether several servers may share the port of gRPC.")
    grpc_header_forward_pattern: str = _grpc(PATTERN, "",
        "Metadata whose keys match this regular expression become parameters of the request.")
    grpc_infer_thread_count: int = _grpc(integer(2, 128), 2,
        "Threads that handle inference requests.", idle=_ONE_LOOP)
    grpc_infer_allocation_pool_size: int = _grpc(integer(), 8,
        "Request objects that are kept for reuse.", idle="memory of requests is not pooled")
    grpc_max_response_pool_size: int = _grpc(integer(1), 2**31 - 1,
        "Response objects that are kept for reuse.", idle="memory of responses is not pooled")
    grpc_max_message_size: int = _grpc(integer(1, 2**31 - 1), 2**31 - 1,
        "Largest message of a client, in bytes, also after decompression.")
    grpc_message_timeout_secs: int = _grpc(integer(), 60,
        "Longest time in seconds for a message to come, and one second more for each 64 KiB of it that "
        "came; 0 for any. --grpc-engine=grpcio has no such bound.")
    grpc_max_concurrent_streams: int = _grpc(integer(1, 2**31 - 1), 4096,
        "Calls of one connection at a time; clients wait with more.")
    grpc_max_connections: int = _grpc(integer(), 0,
        "Connections of gRPC at a time, others are closed; 0 for what open files allow. "
        "--grpc-engine=grpcio has no such bound.")
    grpc_use_ssl: bool = _grpc(BOOL, False, "Whether gRPC is served over TLS.")
    grpc_use_ssl_mutual: bool = _grpc(BOOL, False,
        "Whether clients must show a certificate; includes --grpc-use-ssl.")
    grpc_server_cert: str = _grpc(STRING, "", "PEM file with the server's certificate.")
    grpc_server_key: str = _grpc(STRING, "", "PEM file with the server's key.")
    grpc_root_cert: str = _grpc(STRING, "",
        "PEM file with the certificates that clients' certificates are checked against.")
    grpc_infer_response_compression_level: str = _grpc(choice("none", "low", "medium", "high"), "none",
        "Compression of inference responses.")
    grpc_keepalive_time: int = _grpc(integer(1), 7_200_000,
        "Milliseconds without traffic after which the server pings.")
    grpc_keepalive_timeout: int = _grpc(integer(1), 20_000,
        "Milliseconds that the server waits for the answer to a ping.")
    grpc_keepalive_permit_without_calls: bool = _grpc(BOOL, False,
        "Whether pings are sent while no call is in flight.")
    grpc_http2_max_pings_without_data: int = _grpc(integer(), 2,
        "Pings that are sent while there is no data; 0 for any number.")
    grpc_http2_min_recv_ping_interval_without_data: int = _grpc(integer(), 300_000,
        "Milliseconds between pings of a client without data; earlier ones count as strikes.")
    grpc_http2_max_ping_strikes: int = _grpc(integer(), 2,
        "Strikes after which a connection is closed; 0 for any number.")
    grpc_max_connection_age: int = _grpc(integer(), 0,
        "Milliseconds after which a connection is closed; 0 for never.")
    grpc_max_connection_age_grace: int = _grpc(integer(), 0,
        "Milliseconds that calls get to end when their connection's age is over; 0 for any.")
    grpc_restricted_protocol: dict[str, tuple[str, str]] = _grpc(restricted("protocol"), {},
        "Kinds of calls that need metadata: triton-grpc-protocol-<key> must come with <value>.")

    allow_sagemaker: bool = _sagemaker(BOOL, False,
        "Whether the endpoints of Amazon SageMaker are served (docs/platforms.md).")
    sagemaker_port: int = _sagemaker(PORT, 8080,
        "Port of SageMaker's endpoints.")
    sagemaker_safe_port_range: tuple[int, int] | None = _sagemaker(PORT_RANGE, None,
        "Ports that the other endpoints may use, where SageMaker's are served.")
    sagemaker_thread_count: int = _sagemaker(integer(1), 8,
        "Threads that handle SageMaker's requests.", idle=_ONE_LOOP)

    allow_vertex_ai: bool = _vertex(BOOL, platforms.on_vertex_ai,
        "Whether the endpoints of Vertex AI are served (docs/platforms.md); true if AIP_MODE=PREDICTION.")
    vertex_ai_port: int = _vertex(PORT, platforms.port,
        "Port of Vertex AI's endpoints; AIP_HTTP_PORT if that is set.")
    vertex_ai_thread_count: int = _vertex(integer(1), 8,
        "Threads that handle Vertex AI's requests.", idle=_ONE_LOOP)
    vertex_ai_default_model: str = _vertex(STRING, "",
        "Model of Vertex AI's requests that name none; without it the only one that serves.")

    allow_metrics: bool = _metrics(BOOL, True, "Whether metrics are served.")
    allow_gpu_metrics: bool = _metrics(BOOL, True, "Whether metrics include GPUs.",
        idle="core itself has no metrics of GPUs, a plugin brings them (docs/metrics.md)")
    allow_cpu_metrics: bool = _metrics(BOOL, True,
        "Whether metrics tell about CPU and memory of the machine.")
    metrics_address: str = _metrics(STRING, "",
        "Address that metrics listen on; --http-address if not given, or 127.0.0.1 if that is a Unix "
        "domain socket.")
    metrics_port: int = _metrics(PORT, 8002, "Port of metrics.")
    metrics_interval_ms: float = _metrics(FLOAT, 2000.0,
        "Shortest time in milliseconds between two looks at CPU, memory and GPUs.")
    metrics_use_ssl: bool = _metrics(BOOL, False,
        "Whether metrics are served over TLS, with the certificates that HTTP has.")
    metrics_config: dict[str, str] = _metrics(SETTING, {},
        "Setting of the metrics: counter_latencies=false, histogram_latencies=true, summary_latencies=true "
        "or summary_quantiles=<quantile>:<error>,… (docs/metrics.md).")

    trace_config: dict[str, list[tuple[str, str]]] = _tracing(TRACE, {},
        "Setting of tracing: of mode triton or of the mode of a plugin, or without a mode of all of them.")

    backend_directory: str = _backend(STRING, "/opt/tritonserver/backends",
        "Folder with a folder for each backend that is a model.py; packages go first.")
    backend_config: dict[str, dict[str, str]] = _backend(settings("backend"), {},
        "Setting of a backend, or without a name of all of them.")

    repoagent_directory: str = _agent(STRING, "/opt/tritonserver/repoagents",
        "Folder with a folder for each repository agent that is an agent.py; plugins and what is built in go "
        "first.")

    cache_config: dict[str, dict[str, str]] = _cache(settings("cache", owner_needed=True), {},
        "Setting of the response cache, such as local,size=1048576; plugins bring other caches.")
    cache_directory: str = _cache(STRING, "/opt/tritonserver/caches",
        "Folder of response caches.", idle="the cache is part of the server")

    rate_limit: str = _rate(choice("execution_count", "off"), "off",
        "How instances compete for resources.")
    rate_limit_resource: dict[str, dict[int, int]] = _rate(RESOURCES, {},
        "How much of a resource there is, on one device or on each.")

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
        "CPU cores (cpu-cores=<lower>-<upper>) or NUMA node (numa-node=<number>) of the instances of a "
        "policy.")
    model_load_gpu_limit: dict[int, float] = _memory(device_pair("<fraction>", read_float), {},
        "Share of a GPU's memory above which no model is loaded.",
        idle="memory of GPUs is not watched")
    request_memory_byte_size: int = _memory(integer(), 0,
        "Bytes that requests and answers of all connections may hold together; 0 for half of the memory of "
        "the machine or container. A connection may hold as many bytes as are still free. Workers split it.")
    unpaid_memory_byte_size: int = _memory(integer(), 48 * 2**20,
        "Bytes that compressed requests of all connections may hold together beyond what their size pays "
        "for (docs/limits.md). Workers split it.")
    allow_client_shm: bool = _memory(BOOL, False,
        "Whether clients may register shared memory by its name. For clients that are trusted: each can "
        "register what any other has made (docs/shared-memory.md).")
    shared_memory_socket: str = _memory(STRING, "",
        "Path of a Unix domain socket that takes descriptors of memory from clients: without names, and "
        "for as long as they are connected (docs/shared-memory.md).")
    shared_memory_socket_uid: list[int] = _memory(NUMBERS, [],
        "User whose processes may use --shared-memory-socket, beside the server's own and root.")

    secure: bool = _security(SWITCH, False,
        "Serve only callers that are known, nothing that changes the server, and no other machine without "
        "TLS, unless other flags say so; docs/security.md has the table.")
    secure_without_tls: bool = _security(SWITCH, False,
        "With --secure, serve other machines without TLS, for a proxy that has it.")
    auth_tokens: str = _security(STRING, "",
        "File with the hashes of tokens, and who has them; python -m core token makes its lines.")
    auth_jwks: str = _security(STRING, "",
        "File with the public keys (a JWK set) of who issues JWT. Needs core[jwt].")
    auth_jwt_issuer: str = _security(STRING, "", "What the claim iss of a JWT must be.")
    auth_jwt_audience: str = _security(STRING, "", "What the claim aud of a JWT must have.")
    auth_jwt_algorithms: tuple[str, ...] = _security(LISTED, ("RS256", "PS256", "ES256", "EdDSA"),
        "Algorithms that the signature of a JWT may have, with commas between.")
    auth_jwt_leeway_secs: int = _security(integer(0, 3600), 30,
        "Seconds that the clock of who issues JWT may differ.")
    auth_jwt_roles_claim: str = _security(STRING, "roles",
        "Claim of a JWT with the caller's roles, such as scope or realm_access.roles.")
    auth_jwt_role: dict[str, tuple[str, ...]] = _security(
        grouped(("infer", "read", "manage")), {},
        "Value in that claim which stands for a role; without any, values are the roles.")
    auth_open: tuple[str, ...] = _security(some_of((*RESTRICTED_CATEGORIES, "metrics")), ("health",),
        "Kinds of requests that need no token, with commas between; none for no kind.")
    limit_rate: float = _security(AMOUNT, 0.0,
        "Requests a second that a caller may send; 0 for any number. Callers of --auth-tokens may have "
        "limits of their own; who shows no token is known by its address.")
    limit_burst: float = _security(AMOUNT, 0.0,
        "Requests that a caller may send at once after a pause; 0 for those of one second.")
    limit_concurrency: int = _security(integer(), 0,
        "Requests of a caller that may be in flight; 0 for any number.")
    allow_remote_settings: bool = _security(BOOL, True,
        "Whether clients may change settings of log and traces.")
    reload_secs: float = _security(AMOUNT, 10.0,
        "Seconds between two looks at certificates, tokens and keys, which are read again when they have "
        "changed; 0 to read them again on SIGHUP only.")
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
