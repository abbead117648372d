"""HttpOptions: the flags of HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.options import Listener, Options, Section, group
from core.options.values import BOOL, PORT, STRING, choice, integer
from frontends.shared.forms import ORIGINS, PATTERN, restricted
from frontends.shared.options import SharedOptions

_http = group("HTTP")

_ONE_LOOP = "one event loop serves all connections"


@dataclass(kw_only=True)
class HttpOptions(Section):
    """The flags of the HTTP frontend. Other HTTP ports follow the limits too."""

    # fmt: off
    allow_http: bool = _http(BOOL, True,
        "Serve HTTP.")
    http_address: str = _http(STRING, "0.0.0.0",
        "Address of HTTP; unix:/path is a Unix domain socket, without a port.")
    http_port: int = _http(PORT, 8000, "Port of HTTP.")
    reuse_http_port: bool = _http(BOOL, False,
        "Permit several servers to share the port of HTTP.")
    http_header_forward_pattern: str = _http(PATTERN, "",
        "Forward headers whose names match this regular expression as parameters of the request.")
    http_cors_origins: tuple[str, ...] = _http(ORIGINS, (),
        "Origins whose pages may use the server from a browser, such as https://a.example: they may send "
        "credentials. * permits all others without credentials.")
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
    # fmt: on

    @property
    def has_tls(self) -> bool:
        return self.http_use_ssl or self.http_use_ssl_mutual

    reads_again = has_tls  # certificates

    def listeners(self, options: Options) -> Sequence[Listener]:
        if not self.allow_http:
            return ()
        return (
            Listener(
                "http",
                "HTTP",
                self.http_address,
                self.http_port,
                shared=self.reuse_http_port,
                mode=SharedOptions.of(options).unix_socket_mode,
                encrypted=self.has_tls,
                mutual=self.http_use_ssl_mutual,
            ),
        )
