"""Where the servers are: a list of addresses, names of DNS and services of Kubernetes that stand for several.

--servers ─► [read_servers] ─► AddressSource
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence
from dataclasses import replace

from core.errors import invalid
from core_router.servers.kubernetes import KubernetesService, Ports
from core_router.servers.kubernetes_api import KubernetesApi
from core_router.servers.server import Address, TlsPorts
from core_router.servers.source import AddressSource

_PORT, _GRPC_PORT, _METRICS_PORT = 8000, 8001, 8002


class FixedAddress(AddressSource):
    """One server, at one address."""

    def __init__(self, address: Address):
        self._address = address

    async def addresses(self) -> list[Address]:
        return [self._address]

    def __str__(self) -> str:
        return str(self._address)


class DnsName(AddressSource):
    """The servers at all addresses of a name, such as a headless Service of Kubernetes.

    address   that of each of them, with the name in place of the host
    """

    def __init__(self, address: Address):
        self._of = address

    async def addresses(self) -> list[Address]:
        found = await asyncio.get_running_loop().getaddrinfo(
            self._of.host, self._of.port, type=socket.SOCK_STREAM
        )
        return sorted({replace(self._of, host=str(each[4][0])) for each in found})

    def __str__(self) -> str:
        return f"dns://{self._of}"


_SCHEME = (
    r"(?:(?P<source>dns|kubernetes)(?:\+(?P<tls>https|grpcs))?://|(?P<scheme>http|https|grpcs)://)?"
)
_SERVER = re.compile(
    _SCHEME
    + r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:/\s]+)"
    + r"(?::(?P<port>\d{1,5})(?::(?P<grpc>\d{1,5})(?::(?P<metrics>\d{1,5}))?)?)?/?"
)
_NAME = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"  # of Kubernetes, and of a port there; a number is one, too
_SERVICE = re.compile(
    rf"{_SCHEME}(?P<namespace>{_NAME})/(?P<service>{_NAME})"
    rf"(?::(?P<port>{_NAME})(?::(?P<grpc>{_NAME})(?::(?P<metrics>{_NAME}))?)?)?/?"
)


def read_servers(
    text: str, has_metrics_tls: bool = True, api: KubernetesApi | None = None
) -> Sequence[AddressSource]:
    """Return the sources that the option --servers names, with commas between them.

    has_metrics_tls   whether the ports of metrics of https:// use TLS
    api               for services of Kubernetes
    Raises CoreError(INVALID) for text that is no address.
    """
    found: list[AddressSource] = []
    for item in filter(None, (each.strip() for each in text.split(","))):
        if item.startswith(("kubernetes://", "kubernetes+")):
            found.append(_service(item, has_metrics_tls, api or KubernetesApi()))
        else:
            found.append(_server(item, has_metrics_tls))
    if not found:
        raise invalid("--servers names no server; write --servers=host:port,host:port")
    return found


def _server(item: str, has_metrics_tls: bool) -> AddressSource:
    match = _SERVER.fullmatch(item)
    port = int(match["port"] or _PORT) if match else 0
    grpc_port = int(match["grpc"] or _GRPC_PORT) if match else 0
    # Only beside the other ports of a server that has all of its own: 8002 may be another server's.
    standard = _METRICS_PORT if (port, grpc_port) == (_PORT, _GRPC_PORT) else 0
    metrics_port = int(match["metrics"] or standard) if match else 0
    if (
        match is None
        or not all(0 < each < 65536 for each in (port, grpc_port))
        or metrics_port > 65535
    ):
        raise invalid(
            f"--servers: '{item}' is no server; write host:port, host:port:grpc_port, "
            "host:port:grpc_port:metrics_port, http://host:port, https://host:port, grpcs://host:port, "
            "dns://name:port, dns+https://name:port or kubernetes://namespace/service:port"
        )
    host = match["host"].strip("[]")
    try:
        host.encode("idna")  # as each look-up of the name does
    except UnicodeError:
        raise invalid(
            f"--servers: '{item}' has '{host}' as its host, which is no name: between its dots, a name has 1 "
            "to 63 letters, digits and hyphens"
        ) from None
    # The addresses of a name have certificates for the name.
    name = host if match["source"] else ""
    tls = _tls(match["scheme"] or match["tls"], has_metrics_tls, name)
    address = Address(host, port, grpc_port, metrics_port, tls)
    return DnsName(address) if match["source"] else FixedAddress(address)


def _service(item: str, has_metrics_tls: bool, api: KubernetesApi) -> AddressSource:
    match = _SERVICE.fullmatch(item)
    ports = (
        [
            match[name] or usual
            for name, usual in zip(("port", "grpc", "metrics"), Ports(), strict=True)
        ]
        if match
        else []
    )
    numbers = [int(each) for each in ports if each.isdigit()]
    if match is None or not all(0 < each < 65536 for each in numbers):
        raise invalid(
            f"--servers: '{item}' is no service of Kubernetes; write kubernetes://namespace/service:port, "
            "kubernetes://namespace/service:port:grpc_port:metrics_port, or kubernetes+https://… with TLS; "
            "a port is a number or the name of a port of the service"
        )
    api.check()
    namespace, service = match["namespace"], match["service"]
    tls = _tls(match["tls"], has_metrics_tls, f"{service}.{namespace}.svc")
    return KubernetesService(api, namespace, service, Ports(*ports), tls)


def _tls(scheme: str | None, has_metrics_tls: bool, name: str) -> TlsPorts:
    if scheme not in ("https", "grpcs"):
        return TlsPorts()
    is_https = scheme == "https"
    return TlsPorts(is_https, True, is_https and has_metrics_tls, name)
