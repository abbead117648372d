"""The end of a LiveMeter: what fails there, and what is restored all the same."""

import pytest
from core_tune.observation import Refused
from core_tune.server.meter import LiveMeter
from core_tune.settings import Settings

from core.errors import CoreError, Kind, unavailable

ORIGINAL = {"name": "m"}


class Server:
    """Live settings, repository and target of a meter that has changed both settings."""

    model = "m"

    def __init__(self, error=None):
        self.error, self.loaded, self.closed = error, [], 0

    def restore(self):
        if self.error is not None:
            raise self.error

    def load(self, config):
        self.loaded.append(config)

    def config(self):
        return ORIGINAL

    def close(self):
        self.closed += 1


def meter_of(server, own=None):
    meter = object.__new__(LiveMeter)
    meter._server, meter._live, meter._target, meter.repository = own, server, server, server
    meter.original, meter.now, meter._changed = ORIGINAL, Settings(1, 8), True
    return meter


@pytest.mark.parametrize("error", [Refused("too late"), unavailable("it is lost")])
def test_the_configuration_comes_back_if_live_settings_do_not(error):
    server = Server(error)

    with pytest.raises(CoreError, match=r"too late|it is lost"), meter_of(server):
        pass

    assert (server.loaded, server.closed) == ([None], 1)


def test_an_error_names_what_the_server_refuses():
    expected = "the server refuses those from before the search: too late"

    with pytest.raises(CoreError, match=expected), meter_of(Server(Refused("too late"))):
        pass


def test_the_error_that_ended_the_search_comes_first():
    server, broken = Server(unavailable("it is lost")), CoreError(Kind.INVALID, "broken wire")

    with pytest.raises(CoreError) as caught, meter_of(server):
        raise broken

    expected = "broken wire; and the model did not get its settings back: it is lost"
    assert (caught.value.kind, caught.value.message) == (Kind.INVALID, expected)
    assert caught.value.__cause__ is broken and server.closed == 1


def test_an_own_server_gets_nothing_back():
    server = Server(unavailable("it is lost"))

    with pytest.raises(CoreError, match=r"^broken wire$"), meter_of(server, own=object()):
        raise unavailable("broken wire")

    assert (server.loaded, server.closed) == ([], 1)
