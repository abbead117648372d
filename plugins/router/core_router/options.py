"""RouterOptions: what the command line of `core router` says."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import invalid
from core_router import tls_options
from core_router.choice.shares import Shares
from core_router.operate.host_names import read_host_names
from core_router.servers.source import AddressSource
from core_router.servers.tls import ServerCertificates
from frontends.shared.tls import Certificates


@dataclass(frozen=True)
class Limits:
    """Bounds of requests and connections.

    retries           further attempts of a request after its first one
    body_bytes        largest body of a request; 0 for any size: the servers have limits of their own
    kept_body_bytes   largest body that is kept until the response, so that another server can get it
    kept_bytes        bodies of all connections together that are kept
    connections       connections of clients
    idle_s            seconds in which a connection without a request is closed
    client_s          seconds without a byte in which a client must go on with a request
    connect_s         seconds in which a server accepts a connection
    """

    retries: int = 3
    body_bytes: int = 0
    kept_body_bytes: int = 1 << 20
    kept_bytes: int = 256 << 20
    connections: int = 10_000
    idle_s: float = 75.0
    client_s: float = 30.0
    connect_s: float = 2.0

    @property
    def named_body_bytes(self) -> int:
        """Largest body that is kept because it names its model. One client must leave room for others."""
        return min(self.kept_bytes, max(self.kept_body_bytes, self.kept_bytes // 8))


@dataclass(frozen=True)
class RouterOptions:
    """The options of a router.

    sources           where the servers are
    check_s           seconds between two checks of a server
    check_failures    failed checks in a row after which a server is down
    resolve_s         seconds between two looks at DNS
    console           whether the port for operators has the page; None if only this machine can reach it
    admin_tokens      file with the tokens of operators; "" if everyone may use their port
    admin_hosts       names by which they may reach it without tokens, besides addresses and private names
    port, grpc_port   for clients over HTTP and gRPC; None for no gRPC
    headers           sent with each check
    shares            of some servers in the requests
    hedge_quantile    of the durations after which a request gets a second copy; 0 for no copies
    hedge_share       copies per request at most
    drain_s           seconds at the end in which requests in flight are answered
    drain_delay_s     seconds at the end in which the router is not ready, but serves
    http_certificates, grpc_certificates, admin_certificates   of the ports; None without TLS
    server_certificates   for the servers; None if none of them is known to use TLS
    reload_s          seconds between two looks at the files of certificates; 0 for none
    """

    sources: Sequence[AddressSource]
    address: str = "0.0.0.0"
    port: int = 8000
    grpc_port: int | None = 8001
    admin_address: str = "127.0.0.1"
    admin_port: int = 8003
    console: bool | None = None
    admin_tokens: str = ""
    admin_hosts: Sequence[str] = ()
    reuse_port: bool = False
    check_s: float = 1.0
    check_timeout_s: float = 2.0
    check_failures: int = 3
    resolve_s: float = 5.0
    headers: Mapping[str, str] = field(default_factory=dict)
    shares: Shares = field(default_factory=Shares)
    hedge_quantile: float = 0.0
    hedge_share: float = 0.05
    drain_s: float = 30.0
    drain_delay_s: float = 0.0
    limits: Limits = field(default_factory=Limits)
    http_certificates: Certificates | None = None
    grpc_certificates: Certificates | None = None
    admin_certificates: Certificates | None = None
    server_certificates: ServerCertificates | None = None
    reload_s: float = 10.0

    @classmethod
    def of(cls, given: argparse.Namespace) -> RouterOptions:
        """Return the options of a command line. Raises CoreError(INVALID) for one that has no meaning."""
        return cls(
            sources=tls_options.sources_of(given),
            **tls_options.certificates_of(given),
            address=given.http_address,
            port=given.http_port,
            grpc_port=None if given.no_grpc else given.grpc_port,
            admin_address=given.admin_address,
            admin_port=given.admin_port,
            console=given.admin_console,
            admin_tokens=given.admin_tokens,
            admin_hosts=read_host_names(given.admin_hosts),
            reuse_port=given.reuse_port,
            check_s=given.check_secs,
            check_timeout_s=given.check_timeout_secs,
            check_failures=given.check_failures,
            resolve_s=given.resolve_secs,
            headers=_headers(given.token_file),
            shares=Shares.read(given.share),
            hedge_quantile=given.hedge_quantile,
            hedge_share=given.hedge_share,
            drain_s=given.exit_timeout_secs,
            drain_delay_s=given.drain_delay_secs,
            limits=Limits(
                retries=given.retries,
                body_bytes=given.max_body_bytes,
                kept_body_bytes=given.kept_body_bytes,
                kept_bytes=given.kept_bytes,
                connections=given.max_connections,
                idle_s=given.idle_timeout_secs,
                client_s=given.client_timeout_secs,
                connect_s=given.connect_timeout_secs,
            ),
        )


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options on a parser."""
    limits, options = Limits(), RouterOptions(())
    parser.add_argument(
        "--servers",
        required=True,
        metavar="LIST",
        help="servers with commas between them: host:port, host:port:grpc_port, "
        "host:port:grpc_port:metrics_port; https://… with TLS, grpcs://… with TLS for gRPC only; "
        "dns://name:port for all addresses of a name; kubernetes://namespace/service:port for the pods of a "
        "service; dns+https://…, kubernetes+https://… with TLS",
    )
    parser.add_argument(
        "--share",
        action="append",
        default=[],
        metavar="[MODEL@]SERVER=PERCENT",
        help="of the requests for a model, or for all models, that a server gets; may be repeated",
    )
    hedge = parser.add_argument_group("second copies of requests that may be repeated")
    hedge.add_argument(
        "--hedge-quantile",
        type=_part,
        default=options.hedge_quantile,
        metavar="Q",
        help="a request that takes longer than this part of those for its model, such as 0.95, is sent to "
        "another server, too; 0 for none (%(default)g)",
    )
    hedge.add_argument(
        "--hedge-share",
        type=_part,
        default=options.hedge_share,
        metavar="S",
        help="copies per request at most (%(default)g)",
    )
    port = parser.add_argument_group("ports")
    port.add_argument(
        "--http-port", type=_port, default=options.port, help="for clients (%(default)s)"
    )
    port.add_argument(
        "--grpc-port", type=_port, default=options.grpc_port, help="for clients (%(default)s)"
    )
    port.add_argument("--no-grpc", action="store_true", help="serve HTTP only")
    port.add_argument("--http-address", default=options.address, help="of both ports (%(default)s)")
    port.add_argument(
        "--admin-port",
        type=_port,
        default=options.admin_port,
        help="for operators: /console, /metrics, /servers (%(default)s)",
    )
    port.add_argument("--admin-address", default=options.admin_address, help="(%(default)s)")
    port.add_argument(
        "--admin-console",
        type=_perhaps,
        default=options.console,
        metavar="true|false|auto",
        help="the page /console on that port; auto: if only this machine can reach it (auto)",
    )
    port.add_argument(
        "--admin-tokens",
        default=options.admin_tokens,
        metavar="FILE",
        help="with the tokens of operators, as for --auth-tokens of a server; without it, everyone is one",
    )
    port.add_argument(
        "--admin-hosts",
        default="",
        metavar="NAME,…",
        help="public names of that port; without tokens and TLS it answers to no others; '*' for every name",
    )
    port.add_argument(
        "--reuse-port",
        action="store_true",
        help="several routers share --http-port, one per processor",
    )
    tls_options.declare(parser)
    check = parser.add_argument_group("checks of the servers")
    _seconds(check, "--check-secs", options.check_s, "between two checks of a server")
    _seconds(
        check, "--check-timeout-secs", options.check_timeout_s, "in which a server answers a check"
    )
    check.add_argument(
        "--check-failures",
        type=_count,
        default=options.check_failures,
        metavar="N",
        help="failed checks in a row after which a server is down (%(default)s)",
    )
    _seconds(check, "--resolve-secs", options.resolve_s, "between two look-ups of names")
    check.add_argument(
        "--token-file", type=Path, metavar="FILE", help="with a token that the servers' checks need"
    )
    bound = parser.add_argument_group("limits")
    for name, value, text in (
        ("--retries", limits.retries, "further attempts of a request that may be repeated"),
        (
            "--max-body-bytes",
            limits.body_bytes,
            "largest body of a request; 0 for the servers' limits",
        ),
        (
            "--kept-body-bytes",
            limits.kept_body_bytes,
            "largest body that is kept for another attempt",
        ),
        ("--kept-bytes", limits.kept_bytes, "all bodies that are kept at a time"),
        ("--max-connections", limits.connections, "connections of clients"),
    ):
        bound.add_argument(
            name, type=_natural, default=value, metavar="N", help=f"{text} (%(default)s)"
        )
    _seconds(
        bound, "--connect-timeout-secs", limits.connect_s, "in which a server accepts a connection"
    )
    _seconds(
        bound, "--client-timeout-secs", limits.client_s, "in which a client goes on with a request"
    )
    _seconds(
        bound, "--idle-timeout-secs", limits.idle_s, "after which an idle connection is closed"
    )
    end = parser.add_argument_group("end")
    _seconds(
        end, "--exit-timeout-secs", options.drain_s, "in which requests in flight are answered"
    )
    _seconds(
        end,
        "--drain-delay-secs",
        options.drain_delay_s,
        "of service that is not ready, before that",
    )


def _seconds(group: argparse._ArgumentGroup, name: str, value: float, text: str) -> None:
    group.add_argument(
        name, type=_duration, default=value, metavar="S", help=f"seconds {text} (%(default)g)"
    )


def _headers(token_file: Path | None) -> dict[str, str]:
    if token_file is None:
        return {}
    try:
        token = token_file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(f"--token-file '{token_file}' cannot be read: {error}") from None
    if not token or not token.isprintable():
        raise invalid(f"--token-file '{token_file}' must hold one token, and no more")
    return {"Authorization": f"Bearer {token}"}


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def _part(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value < 65536:
        raise ValueError
    return value


def _duration(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e9:
        raise ValueError
    return value


def _perhaps(text: str) -> bool | None:
    values = {"true": True, "false": False, "auto": None}
    if text.lower() not in values:
        raise ValueError
    return values[text.lower()]


# argparse shows these names in its errors: "invalid number value: 'x'".
_natural.__name__ = _count.__name__ = "number"
_port.__name__ = "port"
_duration.__name__ = "seconds"
_part.__name__ = "number from 0 to 1,"
_perhaps.__name__ = "true, false or auto"
