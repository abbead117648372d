"""Our messages live beside those of a Triton client, and speak the same bytes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from core.config import ModelConfig, messages, proto
from core.config.compile import compiled

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
    """A descriptor set of one file whose message holds a ModelConfig, as grpc_service.proto does."""
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


def test_the_committed_files_are_those_of_the_proto():
    pytest.importorskip("grpc_tools")
    folder = Path(proto.__file__).parent

    descriptors, stub = compiled(folder / "model_config.proto")

    parse = descriptor_pb2.FileDescriptorSet.FromString
    assert parse((folder / "model_config.binpb").read_bytes()) == parse(descriptors)
    assert declared((folder / "messages.pyi").read_text()) == declared(stub)


def declared(stub: str) -> list[str]:
    """Classes, fields and enum values of a stub; how types are written differs between compilers."""
    return re.findall(r"^ *(?:class \w+|\w+):?", stub, re.MULTILINE)
