"""Streams of clients whose servers have no open connection: a test says what these answer."""

from core_router.grpc.native.blocks import block_of, status_of
from core_router.grpc.statuses import HEAD
from core_router.grpc.turns import Turns
from core_router.options import Limits, RouterOptions
from core_router.router import Router
from core_router.servers.server import Address, Server, State
from core_router.servers.server_model import ServerModel

from frontends.grpc.protocol import messages
from routing.grpc_servers import V2, request, response
from routing.http2 import Loop

OPEN = block_of([(b":path", (V2 + "ModelStreamInfer").encode())])


def packed(made):
    data = made.SerializeToString()
    return b"\0" + len(data).to_bytes(4, "big") + data


def asks(id, size=0, model="m"):
    made = request(model, id=id)
    made.raw_input_contents.append(bytes(size))
    return packed(made)


def answers(id, size=0, model="m", is_last=None):
    """Return a response. is_last: what it says of itself; None for nothing."""
    made = messages.ModelStreamInferResponse()
    made.infer_response.CopyFrom(response(model, str(id)))
    made.infer_response.raw_output_contents.append(bytes(size))
    if is_last is not None:
        made.infer_response.parameters["triton_final_response"].bool_param = is_last
    return packed(made)


class Client:
    """The connection of a client: what it was sent, and how often it may send more."""

    def __init__(self):
        self.sent, self.status, self.reads = [], None, 0

    def respond(self, id, head, is_last):
        self.status = status_of(head) if is_last else None

    def write(self, id, data):
        self.sent.append(data)
        return True

    def finish(self, id, trailers):
        self.status = status_of(trailers)

    def open_window(self, id):
        self.reads += 1


class Opened:
    """A stream of a client, and the servers that it may reach.

    loop   in which it takes its messages
    """

    def __init__(self, router, loop=None):
        self.router, self.client, self.loop = router, Client(), loop or Loop()
        router.grpc.turns = Turns(self.loop.call_soon)
        self.stream = router.grpc.begin(self.client, 1, OPEN)

    def send(self, *given, is_over=False):
        self.stream.received(None, b"".join(given), None, is_over)
        self.loop.run()

    @property
    def reached(self):
        """The streams to servers, in the order in which they were opened."""
        return list(self.stream._servers.values())

    def waiting(self, at=0):
        return [each.id for each in self.reached[at].waiting]

    def answer(self, *given, at=0):
        found = self.reached[at]
        found.answered(found._attempt, HEAD, b"".join(given), None, False)


def router_of(*models, **limits):
    """Make a router that opens no connection.

    models   one name for each server, "" for a server that may have any model
    """
    router = Router(RouterOptions([], address="", port=0, grpc_port=0, limits=Limits(**limits)))
    router.grpc.connect = lambda pool: None
    for at, name in enumerate(models or [""]):
        server = Server(Address("h", at + 1))
        server.state = State.READY
        server.has_index = bool(name)
        if name:
            found = server.models[name] = ServerModel(server, name)
            found.versions = frozenset("1")
        router.table.servers[server.name] = server
    return router
