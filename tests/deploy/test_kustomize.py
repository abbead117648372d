"""The components: a real kustomize combines them; Kubernetes, the server and the router accept the result."""

import argparse
import re

import kubernetes_validate
import pytest
import yaml
from core_keda.trigger import Trigger
from core_router import options as router_options

from core import plugins
from core.options import parse
from tests.deploy.kustomize_process import COMPONENTS, FOLDER, combine, command, render

VERSION = "1.32"
OTHERS = ("monitoring.coreos.com/v1", "keda.sh/v1alpha1")  # their schemas are not Kubernetes'
SCALING = ("hpa", "hpa-wait", "keda")
SETS = [
    *([each] for each in COMPONENTS),
    [each for each in COMPONENTS if each not in ("hpa", "hpa-wait", "tls")] + ["tls"],
    ["hpa", "monitoring", "headless", "tls"],
    ["hpa-wait", "tls", "bucket"],
    [],
]
real = pytest.mark.skipif(command() is None, reason="neither kustomize nor kubectl is installed")


# The files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", sorted(FOLDER.rglob("kustomization.yaml")), ids=lambda path: path.parent.name
)
def test_a_kustomization_says_what_it_is_and_names_files_that_there_are(path):
    text = path.read_text()
    found = yaml.safe_load(text)

    is_component = path.parent.parent.name == "components"
    assert text.startswith("# ")
    assert found["kind"] == ("Component" if is_component else "Kustomization")
    patches = [each["path"] for each in found.get("patches", ()) if "path" in each]
    named = [*found.get("resources", ()), *found.get("components", ()), *patches]
    assert named or found["patches"]
    for each in named:
        other = path.parent / each
        assert (other / "kustomization.yaml").is_file() or other.is_file()


def test_every_file_is_named():
    named = {
        (path.parent / each).resolve()
        for path in FOLDER.rglob("kustomization.yaml")
        for found in [yaml.safe_load(path.read_text())]
        for each in [
            *found.get("resources", ()),
            *[each.get("path", "") for each in found.get("patches", ())],
        ]
    }

    files = {each.resolve() for each in FOLDER.glob("*/**/*.yaml")}
    assert {each for each in files if each.name != "kustomization.yaml"} <= named


# What comes out -------------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=SETS,
    ids=lambda names: "+".join(names) if len(names) < 3 else len(names),
)
def combined(request, tmp_path_factory):
    """Names of components, and their objects, which no test may change."""
    if command() is None:
        pytest.skip("neither kustomize nor kubectl is installed")
    folder = tmp_path_factory.mktemp("combined")
    return request.param, combine(folder, request.param, namespace="ml")


def pod_of(objects, name="core"):
    return objects["Deployment", name]["spec"]["template"]["spec"]


def container_of(objects, name="core"):
    (found,) = pod_of(objects, name)["containers"]
    return found


def test_kubernetes_accepts_every_object(combined):
    for each in combined[1].values():
        assert each["metadata"]["namespace"] == "ml"
        if each["apiVersion"] not in OTHERS:
            kubernetes_validate.validate(each, VERSION, strict=True)


def test_the_server_accepts_its_arguments(combined):
    parse(container_of(combined[1])["args"], plugins.flags())


def test_every_mount_has_its_volume(combined):
    pod, container = pod_of(combined[1]), container_of(combined[1])

    mounts = [each["name"] for each in container["volumeMounts"]]
    assert sorted(mounts) == sorted(each["name"] for each in pod["volumes"])


def test_every_service_and_policy_is_about_pods_and_ports_that_there_are(combined):
    _, objects = combined
    pods = [each["spec"]["template"] for key, each in objects.items() if key[0] == "Deployment"]
    for (kind, _), each in objects.items():
        if kind == "Service":
            wanted, ports = each["spec"]["selector"], each["spec"]["ports"]
            names = {port["targetPort"] for port in ports}
        elif kind == "NetworkPolicy":
            wanted = each["spec"]["podSelector"]["matchLabels"]
            names = {port["port"] for rule in each["spec"]["ingress"] for port in rule["ports"]}
        else:
            continue
        (pod,) = [pod for pod in pods if wanted.items() <= pod["metadata"]["labels"].items()]
        (container,) = pod["spec"]["containers"]
        assert names <= {port["name"] for port in container["ports"]}


def test_who_scales_sets_the_replicas(combined):
    names, objects = combined

    is_scaled = any(each in SCALING for each in names)
    assert ("replicas" in objects["Deployment", "core"]["spec"]) is not is_scaled


def test_tls_is_everywhere_or_nowhere(combined):
    names, objects = combined
    container, is_secure = container_of(objects), "tls" in names
    options = parse(container["args"], plugins.flags()).listeners()

    probes = [container[f"{each}Probe"]["httpGet"] for each in ("startup", "readiness", "liveness")]
    assert {each.get("scheme") == "HTTPS" for each in probes} == {is_secure}
    assert {each.name for each in options} == {"http", "grpc", "metrics"}
    assert ("--metrics-use-ssl=true" in container["args"]) is is_secure
    plain = {
        key[1]
        for key, each in objects.items()
        if key[0] == "Service" and "h2c" in str(each["spec"]["ports"])
    }
    assert ("core" in plain) is not is_secure
    assert not is_secure or plain <= {"core-router"}
    if "monitoring" in names:
        (endpoint,) = objects["ServiceMonitor", "core"]["spec"]["endpoints"]
        assert (endpoint["scheme"] == "https", "tlsConfig" in endpoint) == (is_secure, is_secure)
    if "keda" in names:
        (trigger,) = objects["ScaledObject", "core"]["spec"]["triggers"]
        assert trigger["metadata"].get("enableTLS", "") == ("true" if is_secure else "")


def test_the_prometheus_operator_finds_one_service(combined):
    names, objects = combined
    if "monitoring" not in names:
        pytest.skip("without `monitoring`, no object tells Prometheus what to read")
    found = [
        key[1]
        for key, each in objects.items()
        if key[0] == "Service"
        and each["metadata"]["labels"].get("app.kubernetes.io/name") == "core"
        and "app.kubernetes.io/component" not in each["metadata"]["labels"]
    ]

    assert found == ["core"]


@real
def test_the_router_finds_the_pods_of_the_servers(tmp_path):
    objects = combine(tmp_path, ["router"])
    parser = argparse.ArgumentParser()
    router_options.declare(parser)
    container = container_of(objects, "core-router")
    arguments = [each.replace("$(NAMESPACE)", "ml") for each in container["args"]]
    arguments.append("--kubernetes-api=http://127.0.0.1:9")  # this is no pod
    options = router_options.RouterOptions.of(parser.parse_args(arguments))
    servers = {port["name"] for port in container_of(objects)["ports"]}

    (source,) = options.sources
    assert "ml/core" in str(source)
    assert "kubernetes://ml/core:http:grpc:metrics" in arguments[0]
    ports = {port["name"]: port["port"] for port in objects["Service", "core"]["spec"]["ports"]}
    assert {"http", "grpc", "metrics"} <= servers & set(ports)
    grace_s = pod_of(objects, "core-router")["terminationGracePeriodSeconds"]
    assert grace_s > options.drain_s + options.drain_delay_s
    (rule,) = objects["Role", "core-router"]["rules"]
    assert rule == {
        "apiGroups": ["discovery.k8s.io"],
        "resources": ["endpointslices"],
        "verbs": ["list", "watch"],
    }
    account = objects["ServiceAccount", "core-router"]["metadata"]["name"]
    assert pod_of(objects, "core-router")["serviceAccountName"] == account
    assert objects["RoleBinding", "core-router"]["subjects"][0]["name"] == account


@real
def test_models_of_a_bucket_come_by_its_secret(tmp_path):
    objects = combine(tmp_path, ["bucket"])
    pod, container = pod_of(objects), container_of(objects)
    (variable,) = container["env"]
    key = variable["valueFrom"]["secretKeyRef"]
    arguments = [
        each.replace(f"$({variable['name']})", "gs://bucket/models") for each in container["args"]
    ]
    (files,) = [each["secret"] for each in pod["volumes"] if "secret" in each]
    mounts = {each["mountPath"] for each in container["volumeMounts"]}

    assert parse(arguments, plugins.flags()).model_repository == ["gs://bucket/models"]
    assert key == {"name": "core-bucket", "key": variable["name"]}  # required: not `optional`
    assert container["envFrom"] == [{"secretRef": {"name": "core-bucket"}}]
    assert files == {"secretName": "core-bucket-files", "optional": True}
    assert mounts == {"/credentials", "/tmp", "/home/core"}


@real
def test_the_adapter_serves_the_metric_by_which_hpa_wait_scales(tmp_path):
    scaler = combine(tmp_path, ["hpa-wait"])["HorizontalPodAutoscaler", "core"]["spec"]
    (rule,) = yaml.safe_load((FOLDER.parent / "prometheus" / "adapter.yml").read_text())["rules"]
    (metric,) = scaler["metrics"]
    name = metric["pods"]["metric"]["name"]

    assert rule["seriesQuery"].startswith(f"{name}{{")
    assert re.fullmatch(rule["name"]["matches"], name)
    assert metric["pods"]["target"] == {"type": "AverageValue", "averageValue": "100m"}


@real
def test_no_pod_reaches_the_routers_port_for_operators(tmp_path):
    policy = combine(tmp_path, ["router", "network-policy"])["NetworkPolicy", "core-router"]["spec"]

    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == [{"ports": [{"port": "http"}, {"port": "grpc"}]}]


@real
def test_the_cluster_may_choose_the_user(tmp_path):
    found = combine(tmp_path, ["router", "any-user"])

    pods = [
        each["spec"]["template"]["spec"]
        for each in found.values()
        if "template" in each.get("spec", {})
    ]
    assert [set(pod["securityContext"]) for pod in pods] == [{"runAsNonRoot", "seccompProfile"}] * 2


@real
def test_the_pause_before_the_end_is_as_long_with_a_drain_file(tmp_path):
    container = container_of(combine(tmp_path, ["drain"]))
    options = parse(container["args"], plugins.flags())

    code = container["lifecycle"]["preStop"]["exec"]["command"][-1]
    compile(code, "preStop", "exec")
    assert options.added["drain_file"] in code and "time.sleep(5)" in code


# The example ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def production():
    if command() is None:
        pytest.skip("neither kustomize nor kubectl is installed")
    return render(FOLDER / "overlays" / "production")


def test_all_of_the_example_is_in_its_namespace_with_its_image(production):
    assert {each["metadata"]["namespace"] for each in production.values()} == {"models"}
    assert container_of(production)["image"] == "registry.example/core:0.1.0"
    for each in production.values():
        if each["apiVersion"] not in OTHERS:
            kubernetes_validate.validate(each, VERSION, strict=True)


def test_keda_reaches_the_servers_of_the_example(production):
    (trigger,) = production["ScaledObject", "core"]["spec"]["triggers"]
    metadata = dict(trigger["metadata"])
    service = production["Service", "core-signals"]
    rules = production["NetworkPolicy", "core"]["spec"]["ingress"]

    assert metadata.pop("enableTLS") == "true"
    assert metadata["scalerAddress"] == f"{service['metadata']['name']}.models.svc:8001"
    assert Trigger.of(metadata, "core") == Trigger("", "wait_seconds", 0.1, 0.0)
    assert any("keda" in str(each["from"]) and {"port": "grpc"} in each["ports"] for each in rules)


def test_the_example_polls_its_models(production):
    options = parse(container_of(production)["args"], plugins.flags())

    assert options.model_control_mode == "poll"


@real
def test_the_folder_itself_is_the_base():
    assert render(FOLDER) == render(FOLDER / "base")
