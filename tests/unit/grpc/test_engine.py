"""Which engine serves gRPC."""

import importlib.util
import sys

import pytest

from core.errors import CoreError, Kind
from core.options import Options
from core.system.account import MemoryAccount
from frontends.grpc.engine import engine
from frontends.shared.call_observers import CallObservers
from frontends.shared.watched_files import WatchedFiles

NATIVE = "frontends.grpc.native.connection"


def name(**options):
    found = Options.defaults(**options)
    made = engine({}, found, WatchedFiles(0), MemoryAccount.of(found), CallObservers())
    return type(made).__name__


@pytest.fixture
def not_built(monkeypatch):
    """An installation without libnghttp2."""
    monkeypatch.setitem(sys.modules, NATIVE, None)
    monkeypatch.delitem(sys.modules, "frontends.grpc.engine_native", raising=False)


built = pytest.mark.skipif(
    importlib.util.find_spec(NATIVE) is None, reason="the engine on nghttp2 was not built"
)


@built
@pytest.mark.parametrize("wanted", ["auto", "native"])
def test_the_native_one_serves_where_it_was_built(wanted):
    assert name(grpc_engine=wanted) == "NativeEngine"


def test_grpcio_serves_if_it_is_configured():
    assert name(grpc_engine="grpcio") == "GrpcioEngine"


def test_grpcio_serves_where_the_native_one_was_not_built(not_built):
    assert name() == "GrpcioEngine"


def test_a_missing_native_engine_is_an_error_with_the_package_to_install(not_built):
    with pytest.raises(CoreError, match="libnghttp2-dev") as error:
        name(grpc_engine="native")
    assert error.value.kind is Kind.UNAVAILABLE
    assert "--grpc-engine=grpcio" in error.value.message
