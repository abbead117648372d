"""A deployment that asks a model by its handle: serve run examples.ray.pipeline:app

Run it in the folder of this repository. A POST with pictures of 8 rows of 8 grey values returns their digits:

    curl -s localhost:8000 -d "[$(python -c 'print([[0.0] * 8] * 8)')]"
"""

import numpy as np
from core_ray import CoreDeployment
from ray import serve
from starlette.requests import Request


@serve.deployment
class Digits:
    """Reads JSON, asks the model for probabilities, and returns the most probable digit of each picture."""

    def __init__(self, models):
        self.models = models

    async def __call__(self, request: Request) -> list[int]:
        pixels = np.array(await request.json(), np.float32)
        found = await self.models.infer.remote("digits", {"pixels": pixels})
        return found["probabilities"].argmax(axis=1).tolist()


# Only this model: others of the repository need backends that may not be installed.
app = Digits.bind(
    CoreDeployment.bind(
        model_repository="examples/models", model_control_mode="explicit", load_model="digits"
    )
)
