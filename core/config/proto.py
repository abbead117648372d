"""Message classes of the .proto files, in a private descriptor pool.

A Triton client in the same process registers messages with the same full names in protobuf's default pool.
The private pool avoids this conflict.

The compiled descriptors are committed beside their source. `make proto` compiles them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

_pool = descriptor_pool.DescriptorPool()
_files: dict[str, bytes] = {}  # file name → serialized FileDescriptorProto


def add(descriptor_set: bytes) -> list[str]:
    """Add the files of a compiled descriptor set to the pool; return their names in the order of the set.

    descriptor_set   output of `protoc --descriptor_set_out`; an imported file must be in the pool already
                     or precede its importer in the set (model_config.proto is in the pool)

    A file may be added twice. Raises ValueError if the pool has another file of the same name. Any thread.
    """
    added = []
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set).file:
        serialized = file.SerializeToString(deterministic=True)
        if _files.setdefault(file.name, serialized) != serialized:
            raise ValueError(f"'{file.name}' is in the pool already, with other content")
        _pool.AddSerializedFile(serialized)
        added.append(file.name)
    return added


def message_class(full_name: str) -> type[Message]:
    """Return the class of a message in the pool, e.g. "inference.ModelConfig"; one object per name.

    Raises KeyError if the pool has no message of that name.
    """
    return _class_of(_pool.FindMessageTypeByName(full_name))


def enum_descriptor(full_name: str) -> Any:
    """Return the descriptor of an enum, e.g. "inference.DataType". Raises KeyError if the pool has none."""
    return _pool.FindEnumTypeByName(full_name)


def module_names(file_name: str) -> dict[str, Any]:
    """Return the names that a generated module for an added file would define at its top level.

    These are its messages (name without package → class), its enums (→ wrapper with Name() and Value())
    and the values of these enums (→ number), and the same of the files that it imports publicly.
    """
    file = _pool.FindFileByName(file_name)
    found: dict[str, Any] = {}
    for imported in file.public_dependencies:
        found.update(module_names(imported.name))
    found["DESCRIPTOR"] = file
    for name, message in file.message_types_by_name.items():
        found[name] = _class_of(message)
    for name, enum in file.enum_types_by_name.items():
        found[name] = EnumTypeWrapper(enum)
        found.update((value.name, value.number) for value in enum.values)
    return found


def _class_of(descriptor: Any) -> type[Message]:
    found = message_factory.GetMessageClass(descriptor)
    for nested in descriptor.nested_types:
        if not hasattr(found, nested.name):  # the Python implementation of protobuf does not set it
            setattr(found, nested.name, _class_of(nested))
    return found


for _name in ("model_execution.binpb", "model_config.binpb"):
    add(Path(__file__).with_name(_name).read_bytes())
