"""Write the type stub of the messages in descriptor sets: message_stubs.py STUB.pyi SET.binpb...

CMake runs it for each module of messages. It needs protobuf only. Types of other files that the sets import
come from core.config.messages.
"""

import keyword
import sys
from collections.abc import Sequence
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

HEAD = """\
# Generated from {names} by cmake/message_stubs.py.
# mypy: disable-error-code="type-arg, no-untyped-def, misc"
from collections.abc import Iterable, Mapping
from typing import ClassVar

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

DESCRIPTOR: FileDescriptor"""
SCALARS = {
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_BYTES: "bytes",
    FieldDescriptorProto.TYPE_DOUBLE: "float",
    FieldDescriptorProto.TYPE_FLOAT: "float",
    FieldDescriptorProto.TYPE_STRING: "str",
}  # all other scalars are int


class Stub:
    """The stub of files of one package. Types are written with their path from the top of the module."""

    def __init__(self, files: Sequence[FileDescriptorProto]):
        self._package = f".{files[0].package}."
        names = [file.name for file in files]
        self._lines = [HEAD.format(names=", ".join(names))]
        if any(name not in names for file in files for name in file.dependency):
            self._lines.append("from core.config import messages as _imported")
        self._known: set[str] = set()  # types of these files
        self._entries: dict[str, DescriptorProto] = {}  # messages that protobuf makes for maps
        for file in files:
            for message in file.message_type:
                self._collect(message, self._package + message.name)
            self._known.update(self._package + enum.name for enum in file.enum_type)
        for file in files:
            for enum in file.enum_type:
                self._enum(enum, enum.name, "")
            for message in file.message_type:
                self._message(message, message.name, "")

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _collect(self, message: DescriptorProto, name: str) -> None:
        self._known.add(name)
        self._known.update(f"{name}.{enum.name}" for enum in message.enum_type)
        for nested in message.nested_type:
            self._collect(nested, f"{name}.{nested.name}")
        if message.options.map_entry:
            self._entries[name] = message

    def _enum(self, enum: EnumDescriptorProto, path: str, indent: str) -> None:
        values = [f"{value.name}: ClassVar[{path}]" for value in enum.value]
        self._lines.append(f"{indent}class {enum.name}(int, metaclass=EnumTypeWrapper):")
        self._lines += [f"{indent}    {value}" for value in values]
        self._lines += [f"{indent}{value.name}: {path}" for value in enum.value]

    def _message(self, message: DescriptorProto, path: str, indent: str) -> None:
        self._lines.append(f"{indent}class {message.name}(Message):")
        inner = f"{indent}    "
        for enum in message.enum_type:
            self._enum(enum, f"{path}.{enum.name}", inner)
        for nested in message.nested_type:
            if not nested.options.map_entry:
                self._message(nested, f"{path}.{nested.name}", inner)
        arguments = ["self"]
        for field in message.field:
            self._lines.append(f"{inner}{field.name.upper()}_FIELD_NUMBER: ClassVar[int]")
            if keyword.iskeyword(field.name):
                continue  # Python code reaches it with getattr and **kwargs only
            attribute, argument = self._types(field)
            self._lines.append(f"{inner}{field.name}: {attribute}")
            arguments.append(f"{field.name}: {argument} | None = ...")
        if any(keyword.iskeyword(field.name) for field in message.field):
            arguments.append("**kwargs")
        self._lines.append(f"{inner}def __init__({', '.join(arguments)}) -> None: ...")

    def _types(self, field: FieldDescriptorProto) -> tuple[str, str]:
        """Return the type of the attribute, and of the argument of the constructor."""
        if (entry := self._entries.get(field.type_name)) is not None:
            key, value = (self._type(each) for each in entry.field)
            is_message = entry.field[1].type == FieldDescriptorProto.TYPE_MESSAGE
            container = "MessageMap" if is_message else "ScalarMap"
            return f"{container}[{key}, {value}]", f"Mapping[{key}, {value}]"
        found = argument = self._type(field)
        container = "RepeatedScalarFieldContainer"
        if field.type == FieldDescriptorProto.TYPE_MESSAGE:
            argument = f"{found} | Mapping"
            container = "RepeatedCompositeFieldContainer"
        elif field.type == FieldDescriptorProto.TYPE_ENUM:
            argument = f"{found} | str"
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            return f"{container}[{found}]", f"Iterable[{argument}]"
        return found, argument

    def _type(self, field: FieldDescriptorProto) -> str:
        """Return the type of one value of a field."""
        if not field.type_name:
            return SCALARS.get(field.type, "int")
        name = field.type_name.removeprefix(self._package)
        return name if field.type_name in self._known else f"_imported.{name}"


def main(stub: str, *sets: str) -> None:
    files = [
        file for each in sets for file in FileDescriptorSet.FromString(Path(each).read_bytes()).file
    ]
    Path(stub).write_text(Stub(files).text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
