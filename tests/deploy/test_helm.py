"""The Helm chart: Helm's own library renders it; Kubernetes' schemas and the server accept the result."""

import importlib.util
import re

import kubernetes_validate
import promql_parser
import pytest
import yaml
from core_keda.trigger import Trigger

from core import plugins
from core.options import parse
from core.telemetry.metrics.catalog import CATALOG
from tests.deploy import helm_process
from tests.deploy.helm_process import CHART

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("helm_python") is None, reason="helm-python-sdk is not installed"
)

VERSION = "1.32"
ALL = {
    "options": ["--log-verbose=1"],
    "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
    "envFrom": [{"configMapRef": {"name": "more"}}],
    "image": {"pullSecrets": ["registry"], "tag": "x"},
    "models": {"subPath": "models", "controlMode": "poll", "secret": "keys"},
    "tls": {"secret": "certificate"},
    "tokens": {"secret": "tokens"},
    "gpus": 2,
    "ingress": {
        "enabled": True,
        "host": "models.example",
        "tlsSecret": "web",
        "className": "nginx",
    },
    "autoscaling": {"by": "hpa"},
    "monitoring": {"serviceMonitor": True, "rules": True, "dashboards": True, "labels": {"a": "b"}},
    "networkPolicy": {"enabled": True, "monitoring": [{"namespaceSelector": {}}]},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
    "podLabels": {"team": "vision"},
    "podAnnotations": {"note": "1"},
    "readiness": {"drain": True, "overloadWaitSecs": 0.5},
}
VALUES = {
    "default": {},
    "all": ALL,
    "bucket": {"models": {"urls": ["s3://b/models", "gs://c/m"], "secret": "keys"}},
    "account": {
        "models": {"urls": ["gs://c/m"], "credentialsFile": {"secret": "gcs"}},
        "serviceAccount": {"name": "reader"},
        "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
    },
    "keda": {"autoscaling": {"by": "keda", "waitSeconds": 0.25}, "service": {"headless": False}},
    "cpu": {"autoscaling": {"by": "hpa", "cpuPercent": 70}},
    "control": {"models": {"controlMode": "explicit"}, "disruption": {"minAvailable": "50%"}},
}
OTHERS = ("monitoring.coreos.com/v1", "keda.sh/v1alpha1")  # their schemas are not Kubernetes'


def rendered(values, name="demo"):
    """Return the objects that Helm makes of some values, by kind and name."""
    found = [
        each
        for path, text in helm_process.render(values, name).items()
        if path.endswith(".yaml")
        for each in yaml.safe_load_all(text)
        if each
    ]
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(by_name) == len(found)
    return by_name


def trigger_of(objects):
    (found,) = objects["ScaledObject", "demo-core"]["spec"]["triggers"]
    return found


@pytest.fixture(params=VALUES)
def objects(request):
    return rendered(VALUES[request.param])


def pod_of(objects):
    return objects["Deployment", "demo-core"]["spec"]["template"]["spec"]


def options_of(objects):
    (container,) = pod_of(objects)["containers"]
    return parse(container["args"], plugins.flags())


def test_kubernetes_accepts_every_object(objects):
    for each in objects.values():
        if each["apiVersion"] not in OTHERS:
            kubernetes_validate.validate(each, VERSION, strict=True)


def test_helm_finds_nothing_wrong():
    found = helm_process.lint()

    assert found["errors"] == []
    assert [each["error"] for each in found["messages"]] == ["icon is recommended"]


def test_the_server_accepts_the_options(objects):
    found = options_of(objects)

    assert found.value("http_port") == 8000
    assert found.model_repository


def test_the_pod_is_not_killed_before_the_server_has_drained(objects):
    pod = pod_of(objects)
    (container,) = pod["containers"]
    pause = container["lifecycle"]["preStop"]["exec"]["command"][-1]

    assert re.findall(r"sleep[ (](\d+)", pause) == ["5"]
    assert pod["terminationGracePeriodSeconds"] > 5 + options_of(objects).exit_timeout_secs


def test_the_container_has_no_rights(objects):
    pod = pod_of(objects)
    found = {**pod["securityContext"], **pod["containers"][0]["securityContext"]}

    assert found["runAsNonRoot"] is True
    assert found["readOnlyRootFilesystem"] is True
    assert found["allowPrivilegeEscalation"] is False
    assert found["capabilities"] == {"drop": ["ALL"]}


def test_the_cluster_may_choose_the_user():
    names = ("runAsUser", "runAsGroup", "fsGroup")
    fixed = pod_of(rendered({}))["securityContext"]
    free = pod_of(rendered({"user": None}))["securityContext"]

    assert [fixed.get(name) for name in names] == [10001] * 3
    assert [free.get(name) for name in names] == [None] * 3
    assert free["runAsNonRoot"] is True


def test_every_volume_is_mounted_and_every_mount_has_a_volume(objects):
    pod = pod_of(objects)
    mounts = [each["name"] for each in pod["containers"][0]["volumeMounts"]]

    assert sorted(mounts) == sorted(each["name"] for each in pod["volumes"])


def test_selectors_match_the_pods(objects):
    labels = objects["Deployment", "demo-core"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        each["spec"].get("selector", each["spec"].get("podSelector"))
        for (kind, _), each in objects.items()
        if kind in ("Service", "PodDisruptionBudget", "NetworkPolicy", "Deployment")
    ]

    assert len(selectors) >= 3
    for each in selectors:
        assert each.get("matchLabels", each).items() <= labels.items()


def test_a_certificate_encrypts_all_ports_and_the_probes_know_it():
    objects = rendered(ALL)
    found = options_of(objects)
    (container,) = pod_of(objects)["containers"]

    assert found.value("http_use_ssl") and found.value("grpc_use_ssl")
    assert found.value("metrics_use_ssl")
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert found.value("http_server_cert") == f"{mounted['tls']}/tls.crt"
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")]
    assert {each["scheme"] for each in probes} == {"HTTPS"}


def test_a_pod_is_not_ready_before_it_ends_and_while_it_is_overloaded():
    objects = rendered(ALL)
    found = options_of(objects)
    (container,) = pod_of(objects)["containers"]

    assert found.value("overload_wait_secs") == 0.5
    assert {each["name"]: each["mountPath"] for each in container["volumeMounts"]}["tmp"] == "/tmp"
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    assert command == ["sh", "-c", f"touch {found.value('drain_file')}; sleep 5"]


def test_images_without_the_plugin_for_readiness_get_no_option_of_it():
    (container,) = pod_of(rendered({}))["containers"]

    assert [each for each in container["args"] if "drain" in each or "overload" in each] == []


def test_tokens_leave_health_and_metrics_open():
    found = options_of(rendered(ALL))

    assert found.value("auth_tokens") == "/tokens/tokens.txt"
    assert set(found.value("auth_open")) == {"health", "metrics"}


def test_gpus_are_added_to_the_limits():
    (container,) = pod_of(rendered(ALL))["containers"]

    assert container["resources"]["limits"] == {"memory": "4Gi", "nvidia.com/gpu": 2}
    assert container["resources"]["requests"] == {"cpu": "2", "memory": "2Gi"}


def test_buckets_replace_the_claim():
    objects = rendered(VALUES["bucket"])

    assert sorted(options_of(objects).model_repository) == ["gs://c/m", "s3://b/models"]
    assert {each["name"] for each in pod_of(objects)["volumes"]} == {"tmp", "home"}
    assert pod_of(objects)["containers"][0]["envFrom"] == [{"secretRef": {"name": "keys"}}]


@pytest.mark.parametrize(
    ("file", "name", "path"),
    [
        ({}, "GOOGLE_APPLICATION_CREDENTIALS", "/credentials/credentials.json"),
        (
            {"key": "stores.json", "variable": "TRITON_CLOUD_CREDENTIAL_PATH"},
            "TRITON_CLOUD_CREDENTIAL_PATH",
            "/credentials/stores.json",
        ),
    ],
)
def test_a_file_of_credentials_is_mounted_and_named(file, name, path):
    models = {"urls": ["gs://c/m"], "credentialsFile": {"secret": "keys", **file}}
    pod = pod_of(rendered({"models": models}))
    (container,) = pod["containers"]
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    secrets = {each["name"]: each["secret"] for each in pod["volumes"] if "secret" in each}

    assert container["env"] == [{"name": name, "value": path}]
    assert name in (CHART.parents[2] / "docs" / "serve" / "cloud-repositories.md").read_text()
    assert path.startswith(f"{mounts['credentials']}/")
    assert secrets == {"credentials": {"secretName": "keys"}}


def test_a_pod_has_the_account_that_is_named_and_no_token_of_kubernetes():
    pod = pod_of(rendered(VALUES["account"]))
    (container,) = pod["containers"]

    assert pod["serviceAccountName"] == "reader"
    assert pod["automountServiceAccountToken"] is False
    names = [each["name"] for each in container["env"]]
    assert names == ["GOOGLE_APPLICATION_CREDENTIALS", "OMP_NUM_THREADS"]
    assert "serviceAccountName" not in pod_of(rendered({}))


def test_autoscaling_leaves_the_number_of_pods_to_the_scaler():
    assert rendered({})["Deployment", "demo-core"]["spec"]["replicas"] == 2
    for by in ("hpa", "keda"):
        deployment = rendered({"autoscaling": {"by": by}})["Deployment", "demo-core"]
        assert "replicas" not in deployment["spec"]


def test_keda_asks_the_service_with_a_trigger_that_the_server_accepts():
    objects = rendered(VALUES["keda"])
    trigger = trigger_of(objects)

    assert trigger["metadata"]["scalerAddress"] == "demo-core-signals.models:8001"
    signals = objects["Service", "demo-core-signals"]["spec"]
    assert [(each["name"], each["port"]) for each in signals["ports"]] == [("grpc", 8001)]
    assert signals["publishNotReadyAddresses"] is True  # overloaded pods are not ready
    assert ("Service", "demo-core") in objects
    assert ("Service", "demo-core-pods") not in objects
    assert Trigger.of(trigger["metadata"], "demo") == Trigger(target=0.25)


def test_keda_may_trust_a_private_authority():
    scaling = {"by": "keda", "authenticationRef": {"name": "core-ca"}}
    values = {"autoscaling": scaling, "tls": {"secret": "certificate"}}
    private = trigger_of(rendered(values))
    public = trigger_of(rendered({**values, "autoscaling": {"by": "keda"}}))

    assert private["authenticationRef"] == {"name": "core-ca", "kind": "TriggerAuthentication"}
    assert "authenticationRef" not in public
    assert private["metadata"]["enableTLS"] == public["metadata"]["enableTLS"] == "true"


@pytest.mark.parametrize(("by", "number"), [("hpa", 2), ("keda", 3)])
def test_the_monitor_scrapes_each_pod_once(by, number):
    objects = rendered({**ALL, "autoscaling": {"by": by}})
    selector = objects["ServiceMonitor", "demo-core"]["spec"]["selector"]
    (absent,) = selector["matchExpressions"]
    services = [each for (kind, _), each in objects.items() if kind == "Service"]
    chosen = [each for each in services if absent["key"] not in each["metadata"]["labels"]]

    assert len(services) == number
    assert [each["metadata"]["name"] for each in chosen] == ["demo-core"]


def test_rules_and_dashboards_are_those_of_the_repository():
    objects = rendered(ALL)
    rules = objects["PrometheusRule", "demo-core"]["spec"]["groups"]
    boards = {
        path.name: (CHART.parents[1] / "grafana" / path.name).read_text()
        for path in (CHART.parents[1] / "grafana").glob("*.json")
    }
    files = [CHART.parents[1] / "prometheus" / name for name in ("recording.yml", "alerts.yml")]

    assert boards
    assert rules == [each for path in files for each in yaml.safe_load(path.read_text())["groups"]]
    for name, text in boards.items():
        found = objects["ConfigMap", f"demo-core-{name.removesuffix('.json')}"]
        assert found["data"] == {name: text}
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"replica": 2}, "replica"),
        ({"models": {"claim": ""}}, "models"),
        ({"models": {"controlMode": "all"}}, "controlMode"),
        ({"options": ["log-verbose"]}, "options"),
        ({"autoscaling": {"by": "keda", "min": 0}}, "min"),
        ({"autoscaling": {"waitSeconds": 0}}, "waitSeconds"),
        ({"autoscaling": {"authenticationRef": {"kind": "Secret"}}}, "kind"),
        ({"ingress": {"enabled": True}}, "host"),
        ({"tokens": {"open": ["helth"]}}, "open"),
        ({"tokens": {"open": ["metrics"]}}, "open"),  # the probes need health
        ({"scratch": "much"}, "scratch"),
        ({"readiness": {"overloadWaitSecs": -1}}, "overloadWaitSecs"),
        ({"readiness": {"drains": True}}, "drains"),
        ({"models": {"credentialsFile": {"variable": "AWS_PROFILE"}}}, "variable"),
        ({"models": {"credentialsFile": {"key": "a/b"}}}, "key"),
        ({"serviceAccount": {"create": True}}, "create"),
    ],
)
def test_wrong_values_are_refused_with_their_name(values, text):
    assert text in helm_process.refusal(values)


def test_a_release_may_have_the_name_of_the_chart():
    assert ("Deployment", "core") in rendered({}, name="core")


def test_the_rule_of_the_adapter_serves_the_metric_of_the_autoscaler():
    (rule,) = yaml.safe_load((CHART.parents[1] / "prometheus" / "adapter.yml").read_text())["rules"]
    scaler = rendered({"autoscaling": {"by": "hpa"}})["HorizontalPodAutoscaler", "demo-core"]
    (metric,) = scaler["spec"]["metrics"]
    query = rule["metricsQuery"].replace("<<.GroupBy>>", "pod")
    query = query.replace("<<.Series>>", metric["pods"]["metric"]["name"])

    promql_parser.parse(query.replace("<<.LabelMatchers>>", 'pod="a"'))
    assert re.fullmatch(rule["name"]["matches"], metric["pods"]["metric"]["name"])
    assert rule["seriesQuery"].startswith(f"{metric['pods']['metric']['name']}{{")
    assert metric["pods"]["metric"]["name"] in CATALOG
