"""Sessions that instances share.

instance ─► [SharedSessions] ─► a session that has room, or a new one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend_tensorflow.session import Session
    from core.backend import Device


@dataclass
class _Shared:
    session: Session
    device: Device
    users: int = 1


class SharedSessions:
    """The sessions of one model version. Thread-safe; one session is made at a time.

    make   makes the session of a device
    most   instances that share one session; 0 for all of a device
    """

    def __init__(self, make: Callable[[Device], Session], most: int):
        self._make, self._most = make, most
        self._lock = threading.Lock()
        self._all: list[_Shared] = []

    def take(self, device: Device) -> Session:
        """Return a session on the device. Raises what `make` raises."""
        with self._lock:
            for each in self._all:
                if each.device == device and (not self._most or each.users < self._most):
                    each.users += 1
                    return each.session
            session = self._make(device)
            self._all.append(_Shared(session, device))
            return session

    def give_back(self, session: Session) -> None:
        """Close the session if no other instance uses it."""
        with self._lock:
            (found,) = [each for each in self._all if each.session is session]
            found.users -= 1
            if not found.users:
                self._all.remove(found)
                session.close()
