"""A route of a plugin on the HTTP port."""

import core
from frontends.http.extra_routes import HttpRoutes
from frontends.http.message import HttpResponse
from frontends.http.route import row


@core.hookimpl
def core_server_starting(server):
    HttpRoutes.of(server).add([row("GET", "/ping/(?P<name>[^/]+)", "health", ping)])


async def ping(server, call):
    """Return the name in the path."""
    return HttpResponse(body=call.captures["name"].encode())
