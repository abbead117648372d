"""compose.yaml: its files exist, the server takes its flags, Prometheus and Grafana find each other."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from core import plugins
from core.options.command_line import parse

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "compose"
# ${NAME:-default}
TEXT = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", (FOLDER / "compose.yaml").read_text())
SERVICES = yaml.safe_load(TEXT)["services"]
KEYS = {
    *("build", "image", "command", "volumes", "ports", "read_only", "tmpfs", "cap_drop"),
    *("security_opt", "stop_grace_period", "environment", "depends_on"),
}


def mounts(service):
    """Return the path on the machine of each file that a container sees, by its path there."""
    found = {}
    for each in SERVICES[service]["volumes"]:
        source, target, *_ = each.split(":")
        if source.startswith("."):
            found[target] = FOLDER / source
    return found


def test_every_setting_is_known():
    assert set(yaml.safe_load(TEXT)) == {"name", "services", "volumes"}
    assert {key for service in SERVICES.values() for key in service} <= KEYS


def test_images_have_a_fixed_version():
    named = [each["image"] for name, each in SERVICES.items() if name != "core"]

    assert [image for image in named if not re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+", image)] == []


@pytest.mark.parametrize("service", SERVICES)
def test_every_file_that_a_container_sees_exists(service):
    assert [path for path in mounts(service).values() if not path.exists()] == []
    assert all(each.endswith(":ro") for each in SERVICES[service]["volumes"] if each[0] == ".")


def test_the_image_has_what_the_example_models_need():
    arguments = SERVICES["core"]["build"]["args"]

    assert (FOLDER / SERVICES["core"]["build"]["context"] / "deploy/docker/Dockerfile").is_file()
    for group in ("BACKENDS", "PLUGINS"):
        for name in arguments[group].split():
            assert (ROOT / group.lower() / name / "pyproject.toml").is_file()
    backends = " ".join(
        path.read_text() for path in mounts("core")["/models"].glob("*/config.pbtxt")
    )
    named = set(re.findall(r'^backend: "(\w+)"', backends, re.MULTILINE))
    assert named <= {"onnxruntime", "python", "fil"}


def test_the_image_takes_what_the_dockerfile_takes():
    dockerfile = (ROOT / "deploy/docker/Dockerfile").read_text()
    taken = set(re.findall(r"^ARG ([A-Z]+)=", dockerfile, re.MULTILINE))

    assert set(SERVICES["core"]["build"]["args"]) == taken - {"PYTHON"}


def test_the_server_takes_its_flags_and_has_its_ports():
    options = parse(SERVICES["core"]["command"], plugins.flags())

    assert list(options.model_repository) == ["/models"]
    defaults = {flag.name: flag.default for flag in plugins.flags().rows}
    ports = [defaults[f"{name}-port"] for name in ("http", "grpc", "metrics")]
    assert SERVICES["core"]["ports"] == [f"127.0.0.1:{port}:{port}" for port in ports]
    limit = int(SERVICES["core"]["stop_grace_period"].removesuffix("s"))
    assert limit > options.exit_timeout_secs


def test_nothing_is_open_to_other_machines():
    ports = [port for service in SERVICES.values() for port in service["ports"]]

    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_prometheus_reads_the_server_and_its_rules():
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    there = mounts("prometheus")

    [job] = config["scrape_configs"]
    assert job["job_name"] == "core"
    assert job["static_configs"] == [{"targets": ["core:8002"]}]
    assert {f"/etc/prometheus/{name}" for name in config["rule_files"]} <= set(there)
    assert "--config.file=/etc/prometheus/prometheus.yml" in SERVICES["prometheus"]["command"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_takes_its_configuration(tmp_path):
    for target, source in mounts("prometheus").items():
        shutil.copy(source, tmp_path / Path(target).name)

    done = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_grafana_finds_prometheus_and_the_dashboards():
    provisioned = "/etc/grafana/provisioning"
    there = mounts("grafana")
    source = yaml.safe_load(there[f"{provisioned}/datasources/core.yml"].read_text())
    boards = yaml.safe_load(there[f"{provisioned}/dashboards/core.yml"].read_text())

    [prometheus] = source["datasources"]
    assert (prometheus["type"], prometheus["url"]) == ("prometheus", "http://prometheus:9090")
    assert prometheus["isDefault"]
    folder = there[boards["providers"][0]["options"]["path"]]
    titles = {json.loads(path.read_text())["title"] for path in folder.glob("*.json")}
    page = (ROOT / "docs" / "operate" / "grafana.md").read_text()
    assert titles and all(f"*{title}*" in page for title in titles)
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (folder / Path(home).name).is_file()
