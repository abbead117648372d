"""Our messages live beside those of a Triton client, and speak the same bytes."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from core.config import ModelConfig, messages, proto

ROOT = Path(__file__).parents[3]
PROTO_FILES = sorted(
    each
    for folder in ("core/config", "frontends/grpc/protocol")
    for each in (ROOT / folder).glob("*.proto")
)

OURS = """
from core.config import ModelConfig
ours = ModelConfig(name="m", max_batch_size=4)
"""
THEIRS = """
from tritonclient.grpc import model_config_pb2, service_pb2
theirs = model_config_pb2.ModelConfig(name="m", max_batch_size=4)
"""
SAME = """
assert ours.SerializeToString() == theirs.SerializeToString()
assert type(ours) is not type(theirs)
assert ours.DESCRIPTOR.full_name == theirs.DESCRIPTOR.full_name
assert service_pb2.ModelConfigResponse(config=theirs).config.name == "m"
"""


@pytest.mark.parametrize("script", [OURS + THEIRS + SAME, THEIRS + OURS + SAME])
def test_a_triton_client_can_be_imported_before_or_after(script):
    pytest.importorskip("tritonclient.grpc")

    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_clients_bytes_mean_the_same():
    theirs = pytest.importorskip("tritonclient.grpc.model_config_pb2").ModelConfig(
        name="m",
        input=[{"name": "x", "data_type": "TYPE_BF16", "dims": [-1, 3], "reshape": {"shape": []}}],
        dynamic_batching={"preferred_batch_size": [4], "max_queue_delay_microseconds": 10},
        parameters={"k": {"string_value": "v"}},
    )

    ours = ModelConfig.FromString(theirs.SerializeToString())

    assert str(ours) == str(theirs)
    assert theirs.FromString(ours.SerializeToString()) == theirs


def service(name: str, field: str) -> bytes:
    """Return a descriptor set of one file whose message contains a ModelConfig, like grpc_service.proto."""
    file = descriptor_pb2.FileDescriptorProto(
        name=name, package="inference", syntax="proto3", dependency=["model_config.proto"]
    )
    message = file.message_type.add(name="Holder" + field.title())
    message.field.add(name=field, number=1, type=11, label=1, type_name=".inference.ModelConfig")
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def test_further_files_may_import_ours_and_share_its_classes():
    assert proto.add(service("shares.proto", "config")) == ["shares.proto"]

    holder = proto.message_class("inference.HolderConfig")(config=ModelConfig(name="m"))

    assert isinstance(holder.config, ModelConfig)
    assert proto.module_names("shares.proto")["HolderConfig"] is type(holder)


def test_the_same_file_may_be_added_twice_but_not_another_under_its_name():
    proto.add(service("twice.proto", "one"))
    proto.add(service("twice.proto", "one"))

    with pytest.raises(ValueError, match=r"'twice\.proto' is in the pool already"):
        proto.add(service("twice.proto", "two"))


def test_messages_and_enums_are_at_hand_by_name():
    assert messages.ModelConfig is ModelConfig
    assert messages.TYPE_FP32 == 11
    assert messages.DataType.Name(13) == "TYPE_STRING"
    assert messages.ModelInstanceGroup.KIND_MODEL == 3


@pytest.mark.parametrize("proto_file", PROTO_FILES, ids=lambda path: path.name)
def test_the_committed_descriptors_are_those_of_the_proto_file(proto_file, tmp_path):
    protoc = pytest.importorskip("grpc_tools.protoc")
    found = tmp_path / "found.binpb"

    status = protoc.main(
        [
            "protoc",
            f"-I{proto_file.parent}",
            f"-I{ROOT / 'core' / 'config'}",
            f"--descriptor_set_out={found}",
            proto_file.name,
        ]
    )

    parse = descriptor_pb2.FileDescriptorSet.FromString
    assert status == 0
    committed = proto_file.with_suffix(".binpb")
    assert parse(committed.read_bytes()) == parse(found.read_bytes()), "run `make proto`"


@pytest.mark.parametrize("proto_file", PROTO_FILES, ids=lambda path: path.name)
def test_the_stub_declares_the_same_names_as_the_protobuf_compiler(proto_file, tmp_path):
    protoc = pytest.importorskip("grpc_tools.protoc")
    descriptors, stub = proto_file.with_suffix(".binpb"), tmp_path / "found.pyi"
    generator = [sys.executable, ROOT / "cmake" / "message_stubs.py", stub, descriptors]

    subprocess.run(generator, check=True)
    protoc.main(
        [
            "protoc",
            f"--descriptor_set_in={os.pathsep.join(str(each.with_suffix('.binpb')) for each in PROTO_FILES)}",
            f"--pyi_out={tmp_path}",
            proto_file.name,
        ]
    )

    theirs = (tmp_path / f"{proto_file.stem}_pb2.pyi").read_text()
    assert declared(stub.read_text()) == declared(theirs)


def declared(stub: str) -> set[tuple[str, str]]:
    """Classes, attributes and constructor arguments of a stub, with the path of their class.

    Without entries of maps, which have no use in Python, and without the constants of imports.
    """
    found = set()

    def visit(body, path):
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.endswith("Entry"):
                found.add((path, f"class {node.name}"))
                visit(node.body, f"{path}.{node.name}")
            elif isinstance(node, ast.AnnAssign):
                found.add((path, node.target.id))
            elif isinstance(node, ast.FunctionDef):
                names = [each.arg for each in node.args.args]
                found.update((path, f"argument {each}") for each in names)

    visit(ast.parse(stub).body, "")
    return found
