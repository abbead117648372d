"""The contract of a frontend as tests. An author writes a client of the transport, and names the class:

    from core_testing import FrontendClient, FrontendConformance
    from frontend_mqtt import MqttFrontend

    class MqttClient(FrontendClient):
        async def infer(self, model, inputs): ...

    class TestMqtt(FrontendConformance):
        frontend = MqttFrontend
        client = MqttClient

The frontend serves a real server on the event loop of the test. The client uses the frontend's transport.
"""

from core_testing.frontends.client import FrontendClient
from core_testing.frontends.conformance import FrontendConformance

__all__ = ["FrontendClient", "FrontendConformance"]
