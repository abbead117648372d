"""The contract of a frontend as tests. An author writes a client of the transport, and names the class:

    from core_testing import FrontendClient, FrontendConformance
    from frontend_mqtt import MqttFrontend

    class MqttClient(FrontendClient):
        async def infer(self, model, inputs): ...

    class TestMqtt(FrontendConformance):
        frontend = MqttFrontend
        client = MqttClient

The frontend runs before a real core.Server on the loop of the test; the client speaks its own transport.

client.py        FrontendClient: what an author writes
stage.py         the server, the frontend and the models that the tests ask
kit.py           what the groups of tests share: describing.py, inference.py, streaming.py, leaving.py
conformance.py   FrontendConformance: all groups
"""

from core_testing.frontends.client import FrontendClient
from core_testing.frontends.conformance import FrontendConformance

__all__ = ["FrontendClient", "FrontendConformance"]
