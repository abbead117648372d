"""KServe's runtimes, and the services of examples/kserve: they fit together, and fit the server."""

import kubernetes_validate
import pytest
from core_keda.trigger import Trigger
from core_kserve.arrangement import arrangement_of

from core import plugins
from core.options import parse
from tests.deploy.kserve_sdk.objects import (
    FORMATS,
    GRAPHS,
    ROOT,
    RUNTIMES,
    SCALING,
    SERVICES,
    arguments,
    container,
    documents,
    of_kind,
    runtimes,
)

VERSION = "1.32"
NAMES = ("core", "core-many", "core-pickles")
PIPELINES = "a step of a pipeline: the pipeline is a repository, which has the format triton"
UNNAMED = {  # files of installed backends, and why no format of a runtime is for them
    "dali.py": PIPELINES,
    "image.json": PIPELINES,
    "model.dali": PIPELINES,
    "tracker.json": PIPELINES,
    "model-settings.json": "MLServer's description of a model: the format is that of the model",
    "model.so": "machine code: a repository whose config.pbtxt trusts it",
}


def formats(runtime):
    return runtimes()[runtime]["spec"]["supportedModelFormats"]


@pytest.mark.parametrize("name", NAMES)
def test_the_pod_of_a_runtime_is_one_that_kubernetes_accepts(name):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "core"},
        "spec": {"containers": [container(name)]},
    }

    kubernetes_validate.validate(pod, VERSION, strict=True)


@pytest.mark.parametrize("path", [SCALING], ids=["scaling"])
def test_kubernetes_accepts_its_own_objects(path):
    own = [each for each in documents(path) if each["apiVersion"] == "v1"]

    assert own
    for each in own:
        kubernetes_validate.validate(each, VERSION, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_server_takes_the_arguments_and_is_asked_at_its_ports(name):
    options = parse(arguments(name, "iris"), plugins.flags())
    found = container(name)

    (repository,) = options.model_repository
    assert repository.startswith("kserve:///mnt/models")
    probes = {each: found[f"{each}Probe"] for each in ("startup", "readiness", "liveness")}
    http = options.value("http_port")
    assert http == 8080  # that of KServe and Knative for a container without ports
    assert {each["httpGet"]["port"] for each in probes.values()} == {http}
    assert {name: each["httpGet"]["path"] for name, each in probes.items()} == {
        "startup": "/v2/health/ready",
        "readiness": "/v2/health/ready",
        "liveness": "/v2/health/live",
    }
    assert probes["startup"]["periodSeconds"] == probes["readiness"]["periodSeconds"] == 1
    assert "lifecycle" not in found  # Knative refuses it
    assert options.value("grpc_port") == 9000
    metrics = runtimes()[name]["spec"]["annotations"]
    assert metrics["prometheus.kserve.io/port"] == str(options.value("metrics_port"))


@pytest.mark.parametrize("name", NAMES)
def test_the_container_has_no_rights(name):
    found = container(name)["securityContext"]

    assert "runAsUser" not in found  # OpenShift refuses a user that it has not chosen
    assert found["runAsNonRoot"] is True and found["allowPrivilegeEscalation"] is False
    assert found["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_of_the_runtime_is_arranged(name, tmp_path):
    for number, path in enumerate(FORMATS[name]):
        file = tmp_path / str(number) / path
        file.parent.mkdir(parents=True)
        file.touch()

        arrangement_of(tmp_path / str(number), "m", plugins.formats(), trust=name == "sklearn")


def test_each_file_of_a_backend_has_a_format_or_a_reason():
    named = {part for paths in FORMATS.values() for path in paths for part in path.split("/")}
    found = {each.file for each in plugins.formats()}

    assert found - named == found & UNNAMED.keys()


def test_the_page_says_which_files_have_no_format():
    page = (ROOT / "docs" / "operate" / "kserve.md").read_text()

    assert [each for each in UNNAMED if f"`{each}`" not in page] == []


def test_every_named_format_has_been_tried():
    assert {each["name"] for name in NAMES for each in formats(name)} == set(FORMATS)


def test_formats_and_priorities_are_those_that_kserve_takes():
    """KServe's webhook: a format has one priority in a runtime, and another one in other runtimes."""
    chosen = set()
    for name in NAMES:
        found = formats(name)
        versions = [(each["name"], each["version"]) for each in found]
        assert len(set(versions)) == len(versions)
        by_name = {}
        for each in found:
            if each.get("autoSelect"):
                assert by_name.setdefault(each["name"], each.get("priority")) == each.get(
                    "priority"
                )
                many = runtimes()[name]["spec"]["multiModel"]
                assert (each["name"], each["version"], many) not in chosen
                chosen.add((each["name"], each["version"], many))
    priorities = {each.get("priority") for name in NAMES for each in formats(name)}
    assert priorities == {None, 10}  # KServe's own have 1 to 3


@pytest.mark.parametrize("version", [None, "1"])
def test_services_of_torchserve_stay_there(version):
    """TorchServe is chosen for pytorch 1, with priority 2; without a version, the name decides."""
    rivals = [
        each
        for each in formats("core")
        if each["name"] == "pytorch"
        and each.get("autoSelect")
        and version in (None, each["version"])
    ]

    assert [each for each in rivals if each.get("priority", 0) > 2] == []
    assert version is None or not rivals


def test_pickles_are_read_only_for_services_that_name_the_runtime():
    trusting = [name for name in NAMES if "trust=true" in str(arguments(name, "m"))]

    assert trusting == ["core-pickles"]
    assert runtimes()["core-pickles"]["kind"] == "ServingRuntime"
    assert not any(each.get("autoSelect") for each in formats("core-pickles"))


@pytest.mark.parametrize("name", of_kind(SERVICES, "InferenceService"))
def test_a_service_names_a_format_and_protocol_of_its_runtime(name):
    predictor = of_kind(SERVICES, "InferenceService")[name]["spec"]["predictor"]
    model = predictor["model"]
    runtime = model.get("runtime", "core")
    wanted = model["modelFormat"]

    assert (wanted["name"], wanted["version"]) in {
        (each["name"], each["version"])
        for each in formats(runtime)
        if "runtime" in model or each.get("autoSelect")
    }
    spec = runtimes()[runtime]["spec"]
    assert model["protocolVersion"] in spec["protocolVersions"]
    assert ("storageUri" not in model) == spec["multiModel"]
    timeout = parse(arguments(runtime, name), plugins.flags()).exit_timeout_secs
    assert predictor["terminationGracePeriodSeconds"] > timeout


@pytest.mark.parametrize("name", of_kind(SERVICES, "InferenceService"))
def test_the_pod_of_a_service_has_at_most_one_port(name):
    """Knative refuses more. KServe puts the ports of a service beside those of its runtime."""
    model = of_kind(SERVICES, "InferenceService")[name]["spec"]["predictor"]["model"]
    own = container(model.get("runtime", "core"))
    ports = {
        each["containerPort"]: each["name"]
        for each in [*own.get("ports", ()), *model.get("ports", ())]
    }

    assert ports == ({9000: "h2c"} if model["protocolVersion"] == "grpc-v2" else {})


def test_a_trained_model_belongs_to_a_service_of_many_models():
    (trained,) = of_kind(SERVICES, "TrainedModel").values()
    service = of_kind(SERVICES, "InferenceService")[trained["spec"]["inferenceService"]]

    model = service["spec"]["predictor"]["model"]
    assert model["runtime"] == "core-many"
    assert trained["spec"]["model"]["framework"] == model["modelFormat"]["name"]


def test_keda_asks_the_predictor_with_a_trigger_that_the_server_accepts():
    (scaled,) = of_kind(SCALING, "ScaledObject").values()
    (signals,) = of_kind(SCALING, "Service").values()
    (trigger,) = scaled["spec"]["triggers"]
    name = signals["spec"]["selector"]["serving.kserve.io/inferenceservice"]
    service = of_kind(SERVICES, "InferenceService")[name]
    (port,) = signals["spec"]["ports"]

    assert scaled["spec"]["scaleTargetRef"]["name"] == f"{name}-predictor"
    assert service["metadata"]["annotations"]["serving.kserve.io/autoscalerClass"] == "external"
    assert signals["spec"]["publishNotReadyAddresses"] is True  # overloaded servers are not ready
    address = f"{signals['metadata']['name']}.default:{port['port']}"
    assert trigger["metadata"]["scalerAddress"] == address
    assert port["targetPort"] == parse(arguments("core", "m"), plugins.flags()).value("grpc_port")
    assert Trigger.of(trigger["metadata"], "digits") == Trigger("digits", "wait_seconds", 0.1, 0.0)


@pytest.mark.parametrize("name", of_kind(GRAPHS, "InferenceGraph"))
def test_a_graph_begins_at_its_root_and_its_steps_have_names(name):
    root = of_kind(GRAPHS, "InferenceGraph")[name]["spec"]["nodes"]["root"]
    steps = root["steps"]
    services = of_kind(SERVICES, "InferenceService")

    assert {each["serviceName"] for each in steps} <= set(services)
    assert len({each["name"] for each in steps}) == len(steps) > 1
    if root["routerType"] == "Splitter":
        assert sum(each["weight"] for each in steps) == 100
    if root["routerType"] == "Switch":
        assert all(each["condition"].startswith("[@this].#(kind==") for each in steps)
    if root["routerType"] == "Sequence":
        assert [each["data"] for each in steps] == ["$request", "$response"]
        models = [services[each["serviceName"]]["spec"]["predictor"]["model"] for each in steps]
        assert {each["protocolVersion"] for each in models} == {"v1"}


@pytest.mark.parametrize("name", of_kind(GRAPHS, "InferenceGraph"))
def test_a_step_that_names_a_runtime_speaks_the_protocol_by_which_a_graph_calls_it(name):
    """KServe calls it by the first protocol of the runtime that is v1 or v2."""
    services = of_kind(SERVICES, "InferenceService")
    for step in of_kind(GRAPHS, "InferenceGraph")[name]["spec"]["nodes"]["root"]["steps"]:
        model = services[step["serviceName"]]["spec"]["predictor"]["model"]
        if "runtime" in model:
            first, *_ = runtimes()[model["runtime"]]["spec"]["protocolVersions"]
            assert model["protocolVersion"] == first


def test_graphs_show_each_type_of_router():
    found = {each["spec"]["nodes"]["root"]["routerType"] for each in documents(GRAPHS)}

    assert found == {"Sequence", "Splitter", "Switch", "Ensemble"}


def test_the_file_of_runtimes_has_nothing_else():
    assert {each["metadata"]["name"] for each in documents(RUNTIMES)} == set(NAMES)


def test_the_services_need_nothing_but_kserve():
    assert {each["apiVersion"].partition("/")[0] for each in documents(SERVICES)} == {
        "serving.kserve.io"
    }
