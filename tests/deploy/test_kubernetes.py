"""The manifests: Kubernetes' own schemas accept them, and their settings fit the server."""

from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from core_keda.trigger import Trigger

from core import plugins
from core.options import parse

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes" / "base"
KEDA = FOLDER.parent / "components" / "keda" / "keda.yaml"
VERSION = "1.32"


def documents(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def one(name, kind):
    (found,) = [each for each in documents(name) if each["kind"] == kind]
    return found


DEPLOYMENT = one("core.yaml", "Deployment")
POD = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def options(container):
    return parse(container["args"], plugins.flags())


def ports(container):
    return {port["name"]: port["containerPort"] for port in container["ports"]}


@pytest.mark.parametrize("document", documents("core.yaml"), ids=lambda found: found["kind"])
def test_kubernetes_accepts_it(document):
    kubernetes_validate.validate(document, VERSION, strict=True)


def test_keda_asks_the_grpc_port_of_a_service_with_a_trigger_that_the_server_accepts():
    found = {each["kind"]: each for each in yaml.safe_load_all(KEDA.read_text())}
    scaled, service = found["ScaledObject"]["spec"], found["Service"]
    (trigger,) = scaled["triggers"]
    grpc = {port["name"]: port["port"] for port in service["spec"]["ports"]}["grpc"]

    assert scaled["scaleTargetRef"]["name"] == DEPLOYMENT["metadata"]["name"]
    address = f"{service['metadata']['name']}.default.svc:{grpc}"
    assert trigger["metadata"]["scalerAddress"] == address
    assert Trigger.of(trigger["metadata"], "core") == Trigger("", "wait_seconds", 0.1, 0.0)
    assert scaled["minReplicaCount"] == 1


def test_each_probe_uses_its_endpoint():
    asked = {
        name: CONTAINER[name]["httpGet"]["path"]
        for name in ("startupProbe", "readinessProbe", "livenessProbe")
    }

    assert asked == {
        "startupProbe": "/v2/health/ready",
        "readinessProbe": "/v2/health/ready",
        "livenessProbe": "/v2/health/live",
    }


def test_probes_ask_the_port_that_the_server_listens_on():
    found = options(CONTAINER)
    known = {**ports(CONTAINER), found.value("http_port"): found.value("http_port")}

    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert known[CONTAINER[name]["httpGet"]["port"]] == found.value("http_port")


def test_ports_are_those_of_the_options():
    found = options(CONTAINER)

    assert ports(CONTAINER) == {
        "http": found.value("http_port"),
        "grpc": found.value("grpc_port"),
        "metrics": found.value("metrics_port"),
    }


def test_the_service_names_ports_of_the_pod():
    service = one("core.yaml", "Service")

    assert {each["targetPort"] for each in service["spec"]["ports"]} == set(ports(CONTAINER))
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_the_pod_is_not_killed_before_the_server_has_drained():
    pause = CONTAINER["lifecycle"]["preStop"]["exec"]["command"]
    pause_s = int(pause[-1].partition("sleep(")[2].rstrip(")"))

    assert POD["terminationGracePeriodSeconds"] > pause_s + options(CONTAINER).exit_timeout_secs


def test_the_container_has_no_rights():
    found = {**POD["securityContext"], **CONTAINER["securityContext"]}

    assert found["runAsNonRoot"] is True
    assert found["allowPrivilegeEscalation"] is False
    assert found["capabilities"] == {"drop": ["ALL"]}


def test_the_repository_cannot_be_written():
    (mount,) = [each for each in CONTAINER["volumeMounts"] if each["name"] == "models"]

    assert mount["readOnly"] is True
    assert options(CONTAINER).model_repository == [mount["mountPath"]]
