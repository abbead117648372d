"""The API of Kubernetes, as far as a router asks it: EndpointSlices by list and watch.

The objects have the shape of those of a cluster of version 1.30.
"""

import asyncio
import json

from aiohttp import web

PATH = "/apis/discovery.k8s.io/v1/namespaces/ml/endpointslices"


def endpoint(address, **conditions):
    return {
        "addresses": [address],
        "conditions": {"ready": True, "serving": True, "terminating": False, **conditions},
        "nodeName": "node-1",
        "targetRef": {"kind": "Pod", "namespace": "ml", "name": "models-7d9c6b", "uid": "6f1e"},
    }


def endpoint_slice(name, *endpoints, ports=(), kind="IPv4"):
    """Return an EndpointSlice of the Service `models`. ports: pairs of name and number."""
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "generateName": "models-",
            "labels": {"kubernetes.io/service-name": "models"},
        },
        "addressType": kind,
        "endpoints": list(endpoints),
        "ports": [{"name": key, "port": port, "protocol": "TCP"} for key, port in ports],
    }


class KubernetesServer:
    """Serves slices. Its methods may be called on any thread.

    tls        context for HTTPS; None for HTTP, as of `kubectl proxy`
    token      that requests must have; "" for none
    slices     name → EndpointSlice
    tokens     those of the requests so far
    lists      how many there were; each page has one slice
    is_away    whether it resets all connections
    """

    def __init__(self, thread, tls, token="first"):
        self.token = token
        self.slices = {}
        self.tokens = []
        self.lists = self.watches = 0
        self.is_away = False
        self._thread = thread
        self._version = 100
        self._past = []  # pairs of version and event
        self._watching = []
        self._runner, self.url = thread.run(self._open(tls))

    async def _open(self, tls):
        app = web.Application()
        app.add_routes([web.get(PATH, self._answer)])
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        scheme = "http" if tls is None else "https"
        return runner, f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"

    def close(self):
        self.end_watches()
        self._thread.run(self._runner.cleanup())

    def put(self, found):
        """Create or replace a slice, and tell the watches."""
        name = found["metadata"]["name"]
        kind = "MODIFIED" if name in self.slices else "ADDED"
        self._change(kind, found, lambda: self.slices.update({name: found}))

    def delete(self, name):
        found = self.slices[name]
        self._change("DELETED", found, lambda: self.slices.pop(name))

    def expire(self):
        """End the watches, as if their version were too old by now."""
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        self._tell({"type": "ERROR", "object": status})
        self.end_watches()

    def end_watches(self):
        self._tell(None)

    def _change(self, kind, found, change):
        self._version += 1
        found["metadata"]["resourceVersion"] = str(self._version)
        change()
        event = {"type": kind, "object": json.loads(json.dumps(found))}
        self._past.append((self._version, event))
        self._tell(event)

    def _tell(self, event):
        async def tell():
            for each in self._watching:
                each.put_nowait(event)

        self._thread.run(tell())

    async def _answer(self, request):
        if self.is_away:
            request.transport.abort()
            return web.Response()
        assert request.query["labelSelector"] == "kubernetes.io/service-name=models"
        self.tokens.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if self.tokens[-1] != self.token:
            return web.json_response(
                {"kind": "Status", "code": 401, "message": "Unauthorized"}, status=401
            )
        return await (self._watch(request) if "watch" in request.query else self._list(request))

    async def _list(self, request):
        self.lists += 1
        names = sorted(self.slices)
        at = int(request.query.get("continue", 0))
        more = {"continue": str(at + 1)} if at + 1 < len(names) else {}
        return web.json_response(
            {
                "kind": "EndpointSliceList",
                "apiVersion": "discovery.k8s.io/v1",
                "metadata": {"resourceVersion": str(self._version), **more},
                "items": [self.slices[each] for each in names[at : at + 1]],
            }
        )

    async def _watch(self, request):
        since = int(request.query["resourceVersion"])
        assert since <= self._version
        assert request.query["allowWatchBookmarks"] == "true"
        self.watches += 1
        response = web.StreamResponse()
        await response.prepare(request)
        events = asyncio.Queue()
        for version, event in self._past:
            if version > since:
                events.put_nowait(event)
        self._watching.append(events)
        bookmark = {"metadata": {"resourceVersion": str(self._version)}}
        events.put_nowait({"type": "BOOKMARK", "object": bookmark})
        while (event := await events.get()) is not None:
            text = json.dumps(event) + "\n"
            for part in (text[:40], text[40:]):  # an event may come in pieces
                await response.write(part.encode())
                await asyncio.sleep(0)
        self._watching.remove(events)
        return response
