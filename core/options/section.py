"""Section: flags of one part of the server, as the fields of a dataclass.

The name of a field is the name of its flag with underscores. Its annotation is the type of the value. The
call to the function from `group` sets the form, the default and the help text:

    http = group("HTTP")

    @dataclass(kw_only=True)
    class HttpOptions(Section):
        http_port: int = http(PORT, 8000, "Port of HTTP.")

A part registers its section in the hook core_add_options, `parser.add_section(HttpOptions)`, and reads it
with `HttpOptions.of(options)`.
"""

from __future__ import annotations

import copy
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from core.options.values import Form

if TYPE_CHECKING:
    from core.options.table import Options

SectionT = TypeVar("SectionT", bound="Section")


@dataclass(frozen=True)
class Flag:
    """One flag of the command line.

    name      without the leading dashes
    field     name of its field in the section
    group     heading in --help
    default   value if the flag is not set
    idle      why the flag has no effect; "" for a flag with an effect
    """

    name: str
    field: str
    group: str
    form: Form
    default: Any
    help: str
    idle: str = ""


@dataclass(frozen=True)
class Listener:
    """An address on which the server accepts connections.

    name       prefix of its flags: "http" for --http-address and --http-port
    what       kind of its requests in error texts: "HTTP"
    address    address of an interface, or unix:/path
    port       0 for any free port; ignored for a Unix domain socket
    shared     whether other servers may listen on the port too
    mode       permissions of the Unix domain socket, in octal digits
    kind       of the socket
    encrypted  whether clients connect over TLS
    mutual     whether every client shows a certificate
    inference  whether clients send requests for inference
    without_tls  why TLS is impossible here; "" if --<name>-use-ssl enables it
    """

    name: str
    what: str
    address: str
    port: int = 0
    shared: bool = False
    mode: str = "0600"
    kind: socket.SocketKind = socket.SOCK_STREAM
    encrypted: bool = False
    mutual: bool = False
    inference: bool = True
    without_tls: str = ""

    @property
    def is_unix(self) -> bool:
        """Whether the address is a Unix domain socket."""
        return self.address.startswith("unix:")


def group(title: str) -> Callable[..., Any]:
    """Return the function that declares the flags below one heading of --help.

    `idle` is the reason why a flag has no effect: the server accepts the flag and logs the reason. A flag of
    a plugin may replace it.
    """

    def flag(form: Form, default: Any, text: str, *, idle: str = "") -> Any:
        metadata = {"group": title, "form": form, "help": text, "idle": idle}
        return field(default_factory=lambda: copy.copy(default), metadata=metadata)

    return flag


def flags_of(section: type) -> tuple[Flag, ...]:
    """Return the flags of a dataclass, in the order of its fields."""
    return tuple(_flag(row) for row in fields(section) if row.metadata)


def _flag(row: Field[Any]) -> Flag:
    assert callable(row.default_factory)
    name = row.name.replace("_", "-")
    return Flag(name, row.name, default=row.default_factory(), **row.metadata)


@dataclass(kw_only=True)
class Section:
    """Base class of dataclasses whose fields are flags. A subclass overrides the methods that it needs."""

    @classmethod
    def of(cls: type[SectionT], options: Options) -> SectionT:
        """Return the section with its values in `options`: the same object at every call."""
        found: SectionT | None = options.sections.get(cls)
        if found is None:
            names = {row.name for row in fields(cls)}
            given = {name: value for name, value in options.added.items() if name in names}
            found = options.sections[cls] = cls(**given)
            found.resolve(options)
        return found

    def resolve(self, options: Options) -> None:
        """Set values that depend on other flags. `of` calls it once."""

    @classmethod
    def from_environment(cls) -> Mapping[str, Any]:
        """Return values for flags of any section that the command line does not set.

        A server inside a program does not call it.
        """
        return {}

    @classmethod
    def complete(cls, given: dict[str, Any]) -> Sequence[str]:
        """Change or add values of flags, of any section; return lines for the log.

        given   name of a field → value, for the flags that the user sets
        """
        return ()

    def check_usage(self, options: Options) -> None:
        """Raise UsageError for a command line that contradicts itself."""

    def check(self, options: Options) -> None:
        """Raise CoreError(INVALID) if no server can be created from these options."""

    def listeners(self, options: Options) -> Sequence[Listener]:
        """Return the listeners of this part for these options."""
        return ()

    @property
    def reads_again(self) -> bool:
        """Whether this part has files that the server reads again on SIGHUP."""
        return False
