"""The route of the changes of models, and the control operation that tells them to all workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.control import Area
from core.control.exchange import ProcessResults
from core.control.operation import Arguments, question
from core_router.announcing.changes import ModelChanges, Readers, event
from frontends.http.extra_routes import HttpRoutes
from frontends.http.message import EVENT_HEADERS, HttpRequest, HttpResponse
from frontends.http.route import row

if TYPE_CHECKING:
    from core.server import InferenceServer


def _none(answers: ProcessResults, arguments: Arguments) -> None:
    """Merge the answers of the workers, which say nothing."""


class ChangesControl(Area, name="changes"):
    """Tells all workers which models have changed in one of them. Event loop only."""

    def __init__(self, readers: Readers):
        self._readers = readers

    @question("model-repository", _none, internal=True)
    async def tell(self, models: list[str]) -> None:
        """Tell the routers that read in this process."""
        self._readers.tell(models)

    def is_read(self) -> bool:
        """Return whether a router reads here, or may read in another worker."""
        return self.exchange is not None or len(self._readers) > 0


def add_to(server: InferenceServer) -> ModelChanges:
    """Add route and operation to a server. Call it in core_server_starting."""
    readers = Readers()
    control = server.control.add(ChangesControl(readers))

    async def changes(server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Return events: the first at once, then one after each change of models."""
        return HttpResponse(200, EVENT_HEADERS, event(()), readers.join())

    routes = HttpRoutes.of(server)
    routes.add([row("GET", "/v2/repository/changes", "model-repository", changes)])
    routes.on_end(readers.end)
    return ModelChanges(control.tell, control.is_read)
