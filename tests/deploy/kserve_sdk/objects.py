"""The objects of deploy/kubernetes/kserve.yaml and examples/kserve, and the arguments of their containers."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
RUNTIMES = ROOT / "deploy" / "kubernetes" / "kserve.yaml"
SERVICES = ROOT / "examples" / "kserve" / "services.yaml"
GRAPHS = ROOT / "examples" / "kserve" / "graph.yaml"
FILES = (RUNTIMES, SERVICES, GRAPHS)


def documents(path):
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def of_kind(path, *kinds):
    """Return name → object of the kinds in a file."""
    return {each["metadata"]["name"]: each for each in documents(path) if each["kind"] in kinds}


def runtimes():
    return of_kind(RUNTIMES, "ClusterServingRuntime", "ServingRuntime")


def container(runtime):
    (found,) = runtimes()[runtime]["spec"]["containers"]
    return found


def arguments(runtime, name, mount="/mnt/models", **ports):
    """Return the arguments of a runtime's container as KServe starts it for the service `name`.

    mount   folder in place of /mnt/models
    ports   of this machine, in place of those of the container: http, grpc, metrics
    """
    found = [each.replace("{{.Name}}", name) for each in container(runtime)["args"]]
    found = [each.replace("/mnt/models", str(mount)) for each in found]
    for protocol, port in ports.items():
        option = f"--{protocol}-port="
        found = [each for each in found if not each.startswith(option)] + [f"{option}{port}"]
    assert not [each for each in found if re.search(r"{{|}}", each)]
    return found
