"""Control operations: a paused model refuses requests, in each process of the server, until it is resumed."""

import core
from core.control import Area, Changed, change, here
from core.errors import unavailable

paused = set()  # names of models; one set for the process


@core.hookimpl
def core_server_starting(server):
    server.control.add(PauseControl())


class PauseControl(Area, name="pause"):
    """Pauses models."""

    @change("model-repository", subject="pause {model}", otherwise="the others still serve it")
    async def begin(self, model: str) -> Changed:
        """Refuse requests for a model."""
        if model in paused:
            return Changed(idle=True)
        paused.add(model)
        return Changed(undo=lambda: paused.discard(model))

    @change(
        "model-repository", subject="pause {model}", otherwise="the others serve it", forgets=True
    )
    async def end(self, model: str) -> None:
        """Accept requests for a model again."""
        paused.discard(model)

    @here("model-repository")
    def models(self) -> list[str]:
        """Return the names of the paused models."""
        return sorted(paused)


@core.hookimpl
def core_layers(model):
    def layer(handler):
        def refuse_while_paused(request):
            if model.name in paused:
                raise unavailable(f"model '{model.name}' is paused")
            return handler(request)

        return refuse_while_paused

    return [layer]
