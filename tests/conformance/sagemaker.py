"""The port of Amazon SageMaker, and how binary tensors go through it."""

import json

from conformance import platform_port
from conformance.platform_port import PlatformPort, hyphened
from conformance.protocol import tensor

BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="
BODY = {"inputs": [tensor("INPUT0", [1, 2])]}
BINARY_OUTPUT = [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]


class SageMaker(PlatformPort):
    def invocations(self, body, **headers):
        """Headers are named with an underscore for each hyphen."""
        return self.post("/invocations", body, headers=hyphened(headers))

    def load(self, name, url, headers=None):
        return self.post("/models", {"model_name": name, "url": str(url)}, headers=headers)

    def invoke(self, name, body, headers=None):
        return self.post(f"/models/{name}/invoke", body, headers=headers)

    def unload(self, name, headers=None):
        return self.request("DELETE", f"/models/{name}", headers=headers)


def start(launch, models, *options, **kwargs):
    return platform_port.start(launch, SageMaker, "sagemaker", models, *options, **kwargs)


def split(response):
    """(JSON part, the bytes after it) of an answer of SageMaker's MIME type."""
    assert response.status == 200, response.body
    kind = response.headers["Content-Type"]
    assert kind.startswith(BINARY)
    size = int(kind[len(BINARY) :])
    return json.loads(response.body[:size]), response.body[size:]
