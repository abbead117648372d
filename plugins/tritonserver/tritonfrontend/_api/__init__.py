"""The three frontends, in files with the names that Triton's have."""

from tritonfrontend._api._kservegrpc import KServeGrpc
from tritonfrontend._api._kservehttp import KServeHttp
from tritonfrontend._api._metrics import Metrics

__all__ = ["KServeGrpc", "KServeHttp", "Metrics"]
