"""Lines of the access log for what the fast lane answers. Loop thread only; of use to compiled code alone."""

from frontends.http.native.flight import Crew

class Recorder(Crew):
    """Stands between a flight and its lane, and writes the line of its request."""
