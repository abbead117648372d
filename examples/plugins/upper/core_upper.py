"""A method of a plugin on the gRPC port."""

import core
from core.errors import invalid
from frontends.grpc.extra_methods import GrpcMethods
from frontends.grpc.method import UnaryMethod


@core.hookimpl
def core_server_starting(server):
    GrpcMethods.of(server).add([UnaryMethod("/demo.Text/Upper", "metadata", upper, changes=False)])


async def upper(data, call):
    """Return the text of the request in capitals."""
    try:
        return data.decode().upper().encode()
    except UnicodeDecodeError:
        raise invalid("the request is no text in UTF-8") from None
