"""Refuse requests of a model that has enough to do. docs/write/plugins.md explains it."""

import logging

import core
from core.errors import unavailable

logger = logging.getLogger("core")
settings = {"most": 0, "free": []}


@core.hookimpl
def core_add_options(parser):
    parser.add("quota", 0, "Requests that each model takes at once; 0 for any number.")
    parser.add("quota-free", [], "Model without a quota.")


@core.hookimpl
def core_server_starting(server):
    settings["most"] = server.options.added["quota"]
    settings["free"] = server.options.added["quota_free"]


@core.hookimpl
def core_layers(model):
    most = settings["most"]
    if not most or model.name in settings["free"]:
        return None
    return [lambda handler: Quota(model.name, most, handler)]


class Quota:
    """Loop thread only, like every layer: a number needs no lock."""

    def __init__(self, name, most, handler):
        self.name, self.most, self.handler = name, most, handler
        self.running = 0

    def __call__(self, request):
        if self.running >= self.most:
            raise unavailable(f"model '{self.name}' has {self.most} requests already, its quota")
        reply = self.handler(request)
        outer = core.Reply(request)
        self.running += 1

        def arrived(item, final):
            self.running -= final
            outer.send(item, final)

        reply.listen(arrived)
        return outer


@core.hookimpl
def core_model_changed(model, state, reason):
    if state == "failed":
        logger.warning("quota: '%s' %d will answer nothing: %s", model.name, model.version, reason)
