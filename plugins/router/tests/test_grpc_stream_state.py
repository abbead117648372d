"""What an InferStream keeps, and in which order it sends. No connection to its servers is open yet."""

import asyncio

import pytest
from core_router.grpc.native.blocks import block_of, status_of
from core_router.grpc.statuses import HEAD, INTERNAL
from core_router.options import Limits, RouterOptions
from core_router.router import Router
from core_router.servers.server import Address, Server, State
from core_router.servers.server_model import ServerModel
from routing.grpc_servers import V2, request, response

from frontends.grpc.protocol import messages

OPEN = block_of([(b":path", (V2 + "ModelStreamInfer").encode())])


def packed(made):
    data = made.SerializeToString()
    return b"\0" + len(data).to_bytes(4, "big") + data


def asks(id, size=0, model="m"):
    made = request(model, id=id)
    made.raw_input_contents.append(bytes(size))
    return packed(made)


class Task:
    """A task of the router that runs when a test says so."""

    def __init__(self, work):
        self.work = work

    def cancel(self):
        pass


def keep_tasks(router):
    found = []

    def run(work):
        found.append(Task(work))
        return found[-1]

    router.run = run
    return found


def answers(id, size=0, model="m"):
    made = messages.ModelStreamInferResponse()
    made.infer_response.CopyFrom(response(model, str(id)))
    made.infer_response.raw_output_contents.append(bytes(size))
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
    """A stream of a client, and the servers that it may reach."""

    def __init__(self, router):
        self.router, self.client = router, Client()
        self.stream = router.grpc.begin(self.client, 1, OPEN)

    def send(self, *given, is_over=False):
        self.stream.received(None, b"".join(given), None, is_over)

    @property
    def reached(self):
        """The streams to servers, in the order in which they were opened."""
        return list(self.stream._servers.values())

    def waiting(self, at=0):
        return [each.id for each in self.reached[at].waiting]

    def answer(self, *given, at=0):
        found = self.reached[at]
        found.answered(found._attempt, HEAD, b"".join(given), None, False)


@pytest.fixture
def router_of():
    """Make routers. models: one name for each server, "" for a server that may have any model."""

    def make(*models, **limits):
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

    return make


@pytest.fixture
def open_stream(router_of):
    return lambda *models, **limits: Opened(router_of(*models, **limits))


# order ----------------------------------------------------------------------


def test_requests_keep_their_order_while_the_servers_are_looked_at_again(open_stream):
    found = open_stream("other")
    server = found.router.table.servers["h:1"]
    looks = []

    async def look_again():
        looks.append(None)
        if len(looks) == 2:  # the model has come meanwhile
            server.has_index = False
            found.router.table.changed()

    tasks = keep_tasks(found.router)
    found.router.look_again = look_again
    found.send(asks(1), asks(2), asks(3))
    while tasks:
        asyncio.run(tasks.pop(0).work)

    assert len(looks) == 2 and found.waiting() == ["1", "2", "3"]


def test_a_stream_ends_if_the_look_at_the_servers_fails(open_stream):
    found = open_stream("other")

    async def look_again():
        raise ValueError

    tasks = keep_tasks(found.router)
    found.router.look_again = look_again
    found.send(asks(1))
    with pytest.raises(ValueError):
        asyncio.run(tasks.pop().work)

    assert found.client.status == INTERNAL
