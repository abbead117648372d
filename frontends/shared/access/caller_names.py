"""CallerNames: numbers for the callers of requests, for the layers of plugins.

    interceptors ─► [CallerNames] ─► ActiveCall ─► UsageMeter ─► InferenceRequest.caller ─► a layer

A server whose plugins do not ask for callers numbers none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from core.server import InferenceServer
from frontends.shared.access.credentials import kind_and_name, network_of

if TYPE_CHECKING:
    from frontends.shared.access.policy import Caller

ANONYMOUS = "anonymous"
FORGOTTEN = "other callers"
LONGEST_NAME = 128  # characters; a longer header is cut
_MOST_NAMES = 100_000


class _Call(Protocol):
    """A call, independent of its protocol (frontends.shared.interceptors.CallDescription)."""

    @property
    def address(self) -> str: ...
    @property
    def certificate(self) -> str: ...
    def values(self, name: str) -> Sequence[str]: ...


class CallerNames:
    """Gives each caller of one server a number, and knows the name of each number. Loop thread only.

    A caller is the name of its token; else that in its certificate; else, as `identify` says, the value of a
    header; else the address of the client; else `ANONYMOUS`. Numbers begin at 1 and are never used twice.
    Only the callers that were seen last keep number and name.

    wanted   whether frontends number the callers
    """

    def __init__(self, server: InferenceServer | None = None):
        self.wanted = False
        self._header = ""
        self._addresses = False
        self._numbers: OrderedDict[str, int] = OrderedDict()  # the one seen last is the last
        self._names: dict[int, str] = {}
        self._last = 0

    @staticmethod
    def of(server: InferenceServer) -> CallerNames:
        """Return the names of a server: the same object at every call."""
        return server.shared(CallerNames)

    def identify(self, header: str = "", *, addresses: bool = False) -> None:
        """Number the callers from now on. Call it in core_server_starting, before frontends open.

        header      that names a caller without a token and a certificate; "" for none
        addresses   whether callers without all three are told apart by their addresses
        """
        self.wanted = True
        self._header = header.lower()
        self._addresses = addresses

    def number_of(self, caller: Caller | None, call: _Call) -> int:
        """Return the number of who sends a call.

        caller   as the access policy identifies it; None without a policy, and for a call that is not checked
        """
        if caller is not None and caller.known:
            return self.number(caller.name)
        if certificate := call.certificate:
            return self.number(certificate)
        if self._header:
            name = next(iter(call.values(self._header)), "").strip()[:LONGEST_NAME]
            if name:
                return self.number(name)
        return self.number(network_of(call.address) if self._addresses else ANONYMOUS)

    def number_of_text(self, text: str) -> int:
        """Return the number of a caller by its text (Caller.text), as jobs keep it.

        It is that of `ANONYMOUS` for "" or any other text, and for an address unless callers are told
        apart by addresses.
        """
        kind, name = kind_and_name(text)
        if kind == "caller" or (kind == "address" and self._addresses):
            return self.number(name)
        return self.number(ANONYMOUS)

    def number(self, name: str) -> int:
        """Return the number of a caller by its name; a new one for a new name."""
        found = self._numbers.get(name)
        if found is not None:
            self._numbers.move_to_end(name)
            return found
        if len(self._numbers) == _MOST_NAMES:
            _, forgotten = self._numbers.popitem(last=False)
            del self._names[forgotten]
        self._last += 1
        self._numbers[name] = self._last
        self._names[self._last] = name
        return self._last

    def name(self, number: int) -> str:
        """Return the name of a number; `FORGOTTEN` if too many other callers were seen since, and for 0."""
        return self._names.get(number, FORGOTTEN)

    async def close(self) -> None:
        """Forget the callers, because the server has stopped."""
        self._numbers.clear()
        self._names.clear()
