"""REST: the port of its own, --tfserving-port."""

import socket

from frontend_tfserving.frontend import TfServingFrontend

import core

from .conftest import Rest, double

PREDICT = "/v1/models/{}:predict"


def test_the_port_of_its_own_has_these_routes_alone():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with core.Server(tfserving_port=port, http_address="127.0.0.1") as server:
        server.bind("double", double, inputs={"x": ("FP32", [2])}, outputs={"y": ("FP32", [2])})

        async def started():
            frontend = TfServingFrontend(server._inner)
            assert frontend.enabled
            await frontend.start()
            return frontend

        frontend = server._thread.run(started())
        rest = Rest(frontend.port)
        try:
            assert rest.post(PREDICT.format("double"), {"inputs": [1, 2]})[1] == {"outputs": [2, 4]}
            assert rest.get("/v1/models") == (200, {"models": ["double"]})
            status, found = rest.get("/v1/models/double")
            assert (status, found["name"], found["ready"]) == (200, "double", True)
            assert found["model_version_status"][0]["state"] == "AVAILABLE"
            assert rest.get("/v2") == (404, {"error": "Not Found"})
        finally:
            server._thread.run(frontend.stop(5))
