"""How the answers of a lane leave. Loop thread only; of use to compiled code alone."""

from frontends.http.native.port import Port

class LaneWriter:
    """What a Lane is beside a reader: it writes answers in their order, and waits for slow clients."""

    def __init__(self, port: Port) -> None: ...
    def turn(self) -> None:
        """The end of a turn of the loop in which answers came."""
    def send_more(self) -> None:
        """The transport has taken what it got."""
    def cut(self) -> None:
        """Close now; requests in flight are cancelled."""
