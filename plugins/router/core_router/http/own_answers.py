"""What happens to a request that is not forwarded at once: answers of the router and of all servers.

ClientConnection ─► [handle] ─► answer, or Route ─► ClientConnection.forward
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_router.http.sequence_parameters import model_in
from core_router.targets import Purpose, Target

if TYPE_CHECKING:
    from core_router.http.client import ClientConnection
    from core_router.http.heads import RequestHead
    from core_router.router import Router
    from core_router.servers.server import Server
    from core_router.servers.table import Route


def handle(
    router: Router,
    client: ClientConnection,
    head: RequestHead,
    route: Route,
    message: bytes,
    body_at: int,
) -> None:
    """Answer a request that has come as a whole, or have the client forward it.

    message   its bytes for a server, with the body from `body_at` on
    """
    purpose = route.purpose
    if purpose is Purpose.LIVE:
        client.answer(200, b"")
    elif purpose is Purpose.READY:
        is_ready = router.table.is_ready() and not router.is_draining
        client.answer(200 if is_ready else 503, b"")
    elif purpose in (Purpose.EVERY, Purpose.INDEX, Purpose.LIST, Purpose.STATISTICS):
        client.run(_answer_of_all(router, client, head, route.target, message[body_at:]))
    else:
        if purpose is Purpose.NAMED_IN_BODY:
            route = router.table.route(Target(purpose, model_in(message[body_at:])))
        if route.is_known or not router.may_look():
            client.forward(route, message, body_at)
        else:
            client.run(_look_and_forward(router, client, route.target, message, body_at))


def differ(servers: list[Server]) -> bool:
    """Return whether a request for a model may reach a server without it."""
    found = [{name: each.versions for name, each in server.models.items()} for server in servers]
    return any(each != found[0] for each in found)


async def _answer_of_all(
    router: Router, client: ClientConnection, head: RequestHead, target: Target, body: bytes
) -> None:
    status, answer = await router.answer_of_all(target, head, body)
    client.answer(status, answer)


async def _look_and_forward(
    router: Router, client: ClientConnection, target: Target, message: bytes, body_at: int
) -> None:
    """Forward a request for a model that no server had, after the servers were asked again."""
    await router.look_again()
    client.forward(router.table.route(target), message, body_at)
