"""Tables of servers that no router checks."""

from core_router.servers.server import Address, Server
from core_router.servers.server_model import ServerModel
from core_router.servers.table import ServerTable
from core_router.targets import Purpose, Target


class Table:
    """A table of servers: name → state, and the ready versions of their models; None if they show none."""

    def __init__(self, **servers):
        self.table = ServerTable()
        for port, (name, (state, models)) in enumerate(servers.items(), 1):
            server = Server(Address("h", port))
            server.name, server.state = name, state
            server.has_index = models is not None
            for model, versions in (models or {}).items():
                found = server.models[model] = ServerModel(server, model)
                found.versions = frozenset(versions)
            self.table.servers[name] = server

    def route(self, model="", version=""):
        return self.table.route(Target(Purpose.INFERENCE, model, version))

    def names(self, model="", version=""):
        route = self.route(model, version)
        return sorted(each.server.name for each in route.candidates), route.is_known
