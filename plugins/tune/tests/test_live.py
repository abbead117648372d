"""Batches and delay of a running server with live settings change in place."""

from types import SimpleNamespace

import grpc
import pytest
from core_bench.model.control import HttpControl
from core_bench.plan import Side
from core_tune.observation import Refused
from core_tune.online.watched import WatchedServer
from core_tune.queueing.arrivals import Arrivals
from core_tune.server.live import live_batching
from core_tune.server.meter import LiveMeter
from core_tune.server.settings_operations import OverGrpc, OverHttp
from core_tune.settings import Settings
from sleeping_model import CONFIG, sleeper

from core.errors import CoreError, Kind

pytest.importorskip("core_settings")

BATCHING = CONFIG + "dynamic_batching { preferred_batch_size: [ 1 ] }\n"
ARRIVALS = Arrivals(0.5, 0.1)


@pytest.fixture(scope="module")
def batching(running):
    sleeper(running.repository, "batching", 0.01, 0.0, BATCHING)
    running.load("batching")


@pytest.fixture(scope="module", params=["http", "grpc"])
def side(running, batching, request):
    if request.param == "grpc":
        return Side("batching", "batching", running.url, protocol="grpc")
    return Side("batching", "batching", running.address.authority)


@pytest.fixture
def settings(running):
    """Return what reads the live settings of the model, without those of an earlier test."""

    def read(member="settings"):
        found = running.ask("/v2/models/batching/settings")[member]
        return found.get("dynamic_batching", {})

    running.ask("/control/model_settings.reset", {"model": "batching"})
    return read


def refuse(config):
    raise AssertionError("the model is loaded again")


def test_the_search_changes_batches_and_delay_without_a_load(side, settings, monkeypatch):
    with LiveMeter(side, ARRIVALS, round_s=0.1) as meter:
        monkeypatch.setattr(meter.repository, "load", refuse)

        seen = meter.in_flight(Settings(1, 8, 5000, 4), 16)

        assert settings("now")["preferred_batch_size"] == [4, 8]
        assert int(settings("now")["max_queue_delay_microseconds"]) == 5000
        assert max(each.rows for each in seen.sizes) == 8
    assert settings() == {}


def test_instances_and_batches_change_together(side, settings, running):
    with LiveMeter(side, ARRIVALS, round_s=0.1) as meter:
        meter.apply(Settings(2, 4, 5000))

        config = running.ask("/v2/models/batching/config")
        assert config["instance_group"][0]["count"] == 2
        assert settings("now")["preferred_batch_size"] == [4]
    assert running.ask("/v2/models/batching/config")["instance_group"][0]["count"] == 1
    assert settings() == {}


def test_live_settings_from_before_come_back(side, settings, running):
    before = {"max_queue_delay_microseconds": 300}
    running.ask("/v2/models/batching/settings", {"dynamic_batching": before})

    with LiveMeter(side, ARRIVALS, round_s=0.1) as meter:
        meter.apply(Settings(1, 8, 5000))
        assert settings() == {"preferred_batch_size": [8], "max_queue_delay_microseconds": 5000}

    assert settings() == before


@pytest.fixture
def lasting(monkeypatch):
    """Let the server say that it writes live settings to files."""
    for each in (OverHttp, OverGrpc):
        read = each.read
        monkeypatch.setattr(each, "read", lambda self, read=read: {**read(self), "lasting": True})


@pytest.mark.usefixtures("lasting")
def test_a_search_leaves_no_trial_in_files(side, settings, running):
    before = running.ask("/v2/models/batching/config")

    with LiveMeter(side, ARRIVALS, round_s=0.1) as meter:
        meter.apply(Settings(1, 8, 5000))

        config = running.ask("/v2/models/batching/config")
        assert config["dynamic_batching"]["preferred_batch_size"] == [8]
        assert settings() == {}
    assert running.ask("/v2/models/batching/config") == before
    with WatchedServer(side) as server:
        assert server.live


@pytest.mark.usefixtures("lasting")
def test_live_settings_that_hide_the_trials_of_a_search_are_an_error(side, settings, running):
    before = {"max_queue_delay_microseconds": 300}
    running.ask("/v2/models/batching/settings", {"dynamic_batching": before})

    with pytest.raises(
        CoreError, match=r"'batching' has live settings of dynamic_batching .max_qu"
    ):
        LiveMeter(side, ARRIVALS, round_s=0.1)

    assert settings() == before


def test_a_change_that_is_undone_leaves_no_live_settings(side, settings):
    with WatchedServer(side) as server:
        begin = server.now
        assert server.live

        server.apply(Settings(1, 8, 5000))
        assert settings()["preferred_batch_size"] == [8]

        server.apply(begin)
        assert settings() == {}


@pytest.mark.parametrize(
    "config",
    [
        {"name": "sleeper", "max_batch_size": 8},
        {"name": "sleeper", "max_batch_size": 0, "dynamic_batching": {}},
    ],
)
def test_a_model_without_batches_has_no_live_ones(running, config):
    side = Side("sleeper", "sleeper", running.address.authority)
    assert live_batching(HttpControl(side, running.address), "sleeper", config) is None


class OneAnswer(HttpControl):
    """A server that answers one question about live settings, and then is busy."""

    def __init__(self):
        self.asked = []

    def ask(self, method, path, *more):
        self.asked.append((method, *more))
        if method == "GET" and len(self.asked) > 1:
            return 503, {"error": "busy"}
        return 200, {"settings": {"dynamic_batching": {"preferred_batch_size": [6]}}}


def test_the_first_answer_says_which_live_settings_come_back():
    control = OneAnswer()
    groups = [{"count": 1, "kind": "KIND_CPU"}]
    config = {"max_batch_size": 8, "dynamic_batching": {}, "instance_group": groups}
    batching = live_batching(control, "m", config)

    batching.set(Settings(1, 8, 5000))
    batching.restore()

    before = {"preferred_batch_size": [6], "max_queue_delay_microseconds": None}
    assert control.asked[-1] == ("POST", {"dynamic_batching": before})


class Unanswered(grpc.RpcError):
    def __init__(self, code):
        self._code = code

    def code(self):
        return self._code

    def details(self):
        return "no answer"


def operations_with(error):
    """Return the operations over gRPC, of which each ends with an error."""

    def operate(name, **arguments):
        raise error

    return OverGrpc(SimpleNamespace(operate=operate), "m")


def test_a_lost_answer_is_no_refusal():
    """The server may have changed its settings before the answer was lost."""
    operations = operations_with(Unanswered(grpc.StatusCode.DEADLINE_EXCEEDED))

    for ask in (operations.read, lambda: operations.write({})):
        with pytest.raises(CoreError, match="does not answer: no answer") as caught:
            ask()
        assert caught.value.kind is Kind.UNAVAILABLE


def test_what_the_server_refuses_is_refused():
    operations = operations_with(Unanswered(grpc.StatusCode.INVALID_ARGUMENT))

    assert operations.read() is None
    with pytest.raises(Refused, match="no answer"):
        operations.write({})
