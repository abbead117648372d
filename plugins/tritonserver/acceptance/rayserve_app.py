"""A Ray Serve application whose replica holds a server: rayserve_app.py REPOSITORY PORT."""

import sys
import time

import ray
import tritonserver
from fastapi import FastAPI
from ray import serve

app = FastAPI()


@serve.deployment(num_replicas=1, ray_actor_options={"num_cpus": 1})
@serve.ingress(app)
class Deployment:
    def __init__(self, repository):
        self._server = tritonserver.Server(
            model_repository=[repository],
            model_control_mode=tritonserver.ModelControlMode.EXPLICIT,
            log_info=False,
        )
        self._server.start(wait_until_ready=True)
        self._model = None

    @app.get("/identity")
    def identity(self, string_input: str) -> str:
        if not self._server.model("text").ready():
            self._model = self._server.load("text")
        found = []
        for response in self._model.infer(inputs={"string_input": [[string_input]]}):
            found.append(response.outputs["string_output"].to_string_array()[0][0])
        return "".join(found)

    @app.get("/models")
    def models(self) -> dict[str, str]:
        found = self._server.models(exclude_not_ready=True)
        return {name: model.state for (name, _), model in found.items()}


if __name__ == "__main__":
    ray.init(address="local", num_cpus=2, include_dashboard=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[2])})
    serve.run(Deployment.bind(sys.argv[1]), route_prefix="/")
    while True:
        time.sleep(1)
