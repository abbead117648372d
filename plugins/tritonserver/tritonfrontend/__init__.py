"""Triton's module `tritonfrontend`, on core: ports for a `tritonserver.Server` of the same process.

with KServeHttp(server, KServeHttp.Options(port=8000)), Metrics(server):
    …
"""

from tritonfrontend._api import KServeGrpc, KServeHttp, Metrics

__all__ = ["KServeGrpc", "KServeHttp", "Metrics"]
