"""KubernetesService: the servers in the pods of a Service, as its EndpointSlices list them.

KubernetesApi ─► list, then events of a watch ─► [KubernetesService] ─► addresses ─► ServerList
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import aclosing
from random import uniform
from typing import Any, NamedTuple

from core_router.servers.kubernetes_api import ApiError, KubernetesApi, Object
from core_router.servers.server import Address, TlsPorts
from core_router.servers.source import AddressSource

logger = logging.getLogger("core_router")

_MOST_SERVERS = 1000
_PAGE = "500"  # slices in one answer to a list
# The API ends a watch after this time, and it goes on in another: a lost connection is noticed by then.
_WATCH_S = 60
_LEAST_S, _MOST_S = 0.5, 30.0  # between two requests, and after failures
_GONE = 410


class Ports(NamedTuple):
    """The ports of the pods' servers: numbers, or names in the EndpointSlices."""

    http: str = "8000"
    grpc: str = "8001"
    metrics: str = "8002"


class KubernetesService(AddressSource):
    """The pods of one Service that are ready. Event loop only.

    While the API does not answer, the addresses stay those of its last answer.
    """

    def __init__(
        self, api: KubernetesApi, namespace: str, service: str, ports: Ports, tls: TlsPorts
    ):
        self._api = api
        self._ports = ports
        self._tls = tls
        self._name = f"kubernetes://{namespace}/{service}"
        self._path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._of_service = {"labelSelector": f"kubernetes.io/service-name={service}"}
        self._slices: dict[str, Object] = {}  # by name
        self._version = ""  # of the last change that is known; "" before the first list
        self._has_asked = False
        self._said = ""  # last warning

    def __str__(self) -> str:
        return self._name

    async def addresses(self) -> list[Address]:
        """Return the addresses of the pods that are ready. Raises OSError before the API has answered."""
        if not self._version and not self._has_asked:
            self._has_asked = True
            try:
                await self._list()
            except OSError as error:
                self._said = str(error)  # the caller logs it
                raise
        if not self._version:
            raise OSError(self._said or "the API of Kubernetes has not answered yet")
        return self._known()

    async def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever pods become ready or leave, until cancelled."""
        wait_s = _LEAST_S
        while True:
            try:
                if not self._version:
                    await self._list()
                    changed()
                watch = self._api.watch(self._path, self._watched(), _WATCH_S + 15.0)
                async with aclosing(watch) as events:
                    async for event in events:
                        before = self._known()
                        self._take(event)
                        wait_s, self._said = _LEAST_S, ""
                        if self._known() != before:
                            self._warn_if_empty()
                            changed()
            except ApiError as error:
                if error.status == _GONE:
                    self._version = ""  # the API no longer knows what has changed since
                else:
                    self._warn(error)
                wait_s = min(wait_s * 2, _MOST_S)
            except OSError as error:
                self._warn(error)
                wait_s = min(wait_s * 2, _MOST_S)
            # Routers that lose the same API do not come back at once.
            await asyncio.sleep(wait_s * uniform(0.75, 1.25))

    def _watched(self) -> dict[str, str]:
        return {
            **self._of_service,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_S),
        }

    def _warn(self, error: OSError) -> None:
        """Log an error, once while it stays the same."""
        if str(error) != self._said:
            self._said = str(error)
            logger.warning("%s: %s; the servers stay as they were", self._name, error)

    def _warn_if_empty(self) -> None:
        if self._known():
            return
        text = "no pod is ready"
        if any(_is_ready(each) for found in self._slices.values() for each in _endpoints(found)):
            text = f"its pods have no ports named '{self._ports.http}' and '{self._ports.grpc}'"
        logger.warning("%s: %s", self._name, text)

    async def _list(self) -> None:
        """Read all slices, page by page."""
        slices: dict[str, Object] = {}
        query, version = {**self._of_service, "limit": _PAGE}, ""
        while True:
            found = await self._api.list(self._path, query)
            meta = found.get("metadata") or {}
            for each in found.get("items") or ():
                slices[_name_of(each)] = each
            version = str(meta.get("resourceVersion") or "")
            if not (more := meta.get("continue")) or len(slices) > _MOST_SERVERS:
                break
            query = {**query, "continue": str(more)}
        if not version:
            raise OSError("the API of Kubernetes has answered without a resourceVersion")
        self._slices, self._version = slices, version
        self._warn_if_empty()

    def _take(self, event: Object) -> None:
        """Take an event of the watch. Raises ApiError for one that ends it."""
        kind, found = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            code = found.get("code")
            raise ApiError(
                code if isinstance(code, int) else 0,
                f"the watch has failed: {found.get('message') or found.get('reason') or 'no reason'}",
            )
        version = str((found.get("metadata") or {}).get("resourceVersion") or "")
        self._version = version or self._version
        if kind in ("ADDED", "MODIFIED"):
            self._slices[_name_of(found)] = found
        elif kind == "DELETED":
            self._slices.pop(_name_of(found), None)

    def _known(self) -> list[Address]:
        # Pods with two addresses are in slices of both kinds.
        kinds = {str(each.get("addressType")) for each in self._slices.values()}
        kind = "IPv4" if "IPv4" in kinds else "IPv6"
        found = {
            address
            for each in self._slices.values()
            if each.get("addressType") == kind
            for address in self._in(each)
        }
        return sorted(found)[:_MOST_SERVERS]

    def _in(self, found: Object) -> Iterable[Address]:
        """Return the addresses of a slice that are ready."""
        ports = [each for each in found.get("ports") or () if isinstance(each, dict)]
        http, grpc, metrics = (_port(each, ports) for each in self._ports)
        if not http or not grpc:
            return []
        return [
            Address(str(endpoint["addresses"][0]), http, grpc, metrics, self._tls)
            for endpoint in _endpoints(found)
            if _is_ready(endpoint) and endpoint.get("addresses")
        ]


def _name_of(found: Object) -> str:
    return str((found.get("metadata") or {}).get("name"))


def _endpoints(found: Object) -> list[Any]:
    return found.get("endpoints") or []


def _is_ready(endpoint: Any) -> bool:
    """Return whether an endpoint gets new requests. A condition that is not set counts as ready."""
    conditions = endpoint.get("conditions") or {}
    return conditions.get("ready") is not False and not conditions.get("terminating")


def _port(wanted: str, ports: list[Any]) -> int:
    """Return the number of a port; 0 if no port of a slice has the name."""
    if wanted.isdigit():
        return int(wanted)
    found = [each.get("port") for each in ports if each.get("name") == wanted]
    return int(found[0]) if found and isinstance(found[0], int) else 0
