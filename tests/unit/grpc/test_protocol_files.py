"""The .proto files, their compiled form, and peace with other users of the same names."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tritonclient.grpc.service_pb2 as theirs

from core.config import proto
from frontends.grpc.protocol import health_messages, messages

DESCRIPTORS = Path(messages.__file__).with_name("grpc_service.binpb")


def fields_of(descriptor):
    return {
        field.name: (
            field.number,
            field.type,
            field.is_repeated,
            field.containing_oneof and field.containing_oneof.name,
            field.message_type and field.message_type.full_name,
        )
        for field in descriptor.fields
    }


def all_messages(descriptors):
    for each in descriptors:
        yield each
        yield from all_messages(each.nested_types)


def test_messages_have_the_fields_of_the_clients():
    ours = {
        each.full_name: each
        for file in (messages.DESCRIPTOR, *messages.DESCRIPTOR.public_dependencies)
        for each in all_messages(file.message_types_by_name.values())
    }
    clients = {
        each.full_name: each
        for each in all_messages(theirs.DESCRIPTOR.message_types_by_name.values())
    }

    assert ours.keys() == clients.keys()
    for name, descriptor in clients.items():
        assert fields_of(ours[name]) == fields_of(descriptor), name


def test_the_service_has_the_methods_of_the_clients():
    def methods_of(file):
        return {
            method.name: (method.input_type.full_name, method.output_type.full_name)
            for method in file.services_by_name["GRPCInferenceService"].methods
        }

    assert methods_of(messages.DESCRIPTOR) == methods_of(theirs.DESCRIPTOR)


def test_health_answers_serving_in_the_two_bytes_of_load_balancers():
    response = health_messages.HealthCheckResponse

    assert response(status=response.SERVING).SerializeToString() == b"\x08\x01"
    assert response.DESCRIPTOR.full_name == "grpc.health.v1.HealthCheckResponse"


def test_adding_the_same_file_twice_is_no_error():
    proto.add(DESCRIPTORS.read_bytes())


OURS = """
    from frontends.grpc.protocol import messages
    assert messages.ModelInferRequest(id="ours").SerializeToString() == b"\\x1a\\x04ours"
"""
THEIRS = """
    import tritonclient.grpc
    from tritonclient.grpc import service_pb2
    assert service_pb2.ModelInferRequest(id="ours").SerializeToString() == b"\\x1a\\x04ours"
"""


@pytest.mark.parametrize("order", [(OURS, THEIRS), (THEIRS, OURS)], ids=["ours first", "ours last"])
def test_server_and_client_live_in_one_process_in_either_order(order):
    code = "".join(textwrap.dedent(part) for part in order)

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
