"""Dashboards, recording rules and alerts use existing metrics."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from core.system.platform import PORTABLE

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy" / "prometheus"
BOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
PROMTOOL = shutil.which("promtool")
OTHERS = {"up": {"job", "instance"}}  # of Prometheus itself
TARGET = {"job", "instance"}  # labels that a scrape adds
# Where a panel is, and what of it.
PLACE = {"h", "w", "x", "y"}


def rules(name):
    groups = yaml.safe_load((RULES / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


RECORDED = {rule["record"]: rule["expr"] for rule in rules("recording.yml")}
ALERTS = {rule["alert"]: rule for rule in rules("alerts.yml")}


def board(path):
    return json.loads(path.read_text())


def panels(path):
    return [each for each in board(path)["panels"] if each["type"] != "row"]


def as_promql(expression):
    """An expression of a dashboard, with something in the place of each variable."""
    return re.sub(r"\$\{?\w+\}?", "x", expression.replace("$__rate_interval", "5m"))


QUERIES = [
    *((f"{path.stem}: {each['title']}", as_promql(target["expr"]))
      for path in BOARDS for each in panels(path) for target in each["targets"]),
    *RECORDED.items(),
    *((name, rule["expr"]) for name, rule in ALERTS.items()),
]  # fmt: skip


def selectors(expression):
    """Every selector in a parsed expression."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    elif isinstance(expression, promql_parser.MatrixSelector):
        yield expression.vector_selector
    else:
        for name in ("expr", "lhs", "rhs", "param"):
            inside = getattr(expression, name, None)
            if inside is not None:
                yield from selectors(inside)
        for inside in getattr(expression, "args", ()):
            yield from selectors(inside)


@pytest.fixture(scope="module")
def of_router():
    """Families of `core router`, with a server and second copies: name → (kind, labels)."""
    pytest.importorskip("core_router.router", reason="core-router is not installed")
    from core_router.operate.metrics import metrics_text
    from core_router.options import RouterOptions
    from core_router.router import Router
    from core_router.servers.server import Address, Server
    from core_router.servers.server_model import ServerModel

    router = Router(RouterOptions((), grpc_port=None, hedge_quantile=0.9))
    server = router.table.servers["a"] = Server(Address("a", 1))
    server.metrics = b"read"
    model = server.models["m"] = ServerModel(server, "m")
    model.statuses[2] = 1
    found = {}
    for family in text_string_to_metric_families(metrics_text(router)):
        for sample in family.samples:
            name = family.name if family.type == "counter" else sample.name
            found.setdefault(name, (family.type, {*TARGET}))[1].update(sample.labels)
    return found


@pytest.fixture(scope="module")
def labels_of(exposition, catalog, of_router):
    """Name of a sample → labels that it may have."""
    found = {name: set(labels) for name, labels in OTHERS.items()}
    found |= {name: labels for name, (_, labels) in of_router.items()}
    for family in text_string_to_metric_families(exposition):
        # The parser leaves out a `_total` at the end of a counter's name, and gives its samples one.
        entry = catalog.get(family.name) or catalog[f"{family.name}_total"]
        for sample in family.samples:
            name = entry.name if family.type == "counter" else sample.name
            found.setdefault(name, {*TARGET, *entry.labels}).update(sample.labels)
            if name.startswith("core_process_"):
                found[name].add("worker")
    for name in ("core_python_ready", "core_python_restarts"):  # of backends/python
        assert name in (ROOT / "backends/python/backend_python/server/health.py").read_text()
        found[name] = {*TARGET, "model", "version"}
    for name, expression in RECORDED.items():
        (by,) = set(re.findall(r"sum by \(([^)]*)\)", expression))
        found[name] = set(re.split(r",\s*", by)) - {"le"}
    return found


@pytest.mark.skipif(PORTABLE, reason="metrics of the machine are of /proc")
def test_queried_families_exist(labels_of):
    missing = []
    for name, query in QUERIES:
        asked = list(selectors(promql_parser.parse(query)))
        assert asked, query
        for selector in asked:
            labels = labels_of.get(selector.name)
            if labels is None:
                missing.append(f"{name} asks for {selector.name}")
            else:
                matched = {matcher.name for matcher in selector.matchers.matchers}
                missing += [f"{name}: {selector.name} has no {each}" for each in matched - labels]

    assert missing == []


def test_families_of_the_router_are_known_with_their_labels(of_router):
    queried = {
        each.name
        for _, query in QUERIES
        for each in selectors(promql_parser.parse(query))
        if each.name.startswith("core_router_")
    }

    for each in ("refused", "retries", "hedges", "ejections", "responses"):
        assert f"core_router_{each}" in queried
    assert of_router["core_router_retries"] == ("counter", {*TARGET, "reason"})
    assert of_router["core_router_ejections"] == ("counter", {*TARGET, "server", "model"})
    assert of_router["core_router_in_flight"][0] == "gauge"


@pytest.mark.skipif(PORTABLE, reason="metrics of the machine are of /proc")
def test_group_labels_exist(labels_of):
    for name, query in QUERIES:
        asked = selectors(promql_parser.parse(query))
        known = set().union(*(labels_of[each.name] for each in asked))
        for by in re.findall(r"\bby \(([^)]*)\)", query):
            assert set(re.split(r",\s*", by)) <= known, f"{name}: {by}"


def test_a_query_of_an_unknown_family_is_found(labels_of):
    (selector,) = selectors(promql_parser.parse('sum(rate(nv_inference_cuont{model="m"}[5m]))'))

    assert selector.name not in labels_of
    assert [each.name for each in selector.matchers.matchers] == ["model"]


def test_a_counter_is_queried_with_a_rate(catalog, of_router):
    counters = {each.name for each in catalog.values() if each.kind == "counter"}
    counters |= {name for name, (kind, _) in of_router.items() if kind == "counter"}
    for name, query in QUERIES:
        for counter in counters:
            for place in re.finditer(rf"\b{counter}\b", query):
                before = query[: place.start()]
                assert before.endswith(("rate(", "increase(")), f"{name}: {counter}"


class TestDashboards:
    @pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
    def test_a_dashboard_can_be_imported(self, path):
        found = board(path)

        assert found["uid"] == f"core-{path.stem}"
        assert found["schemaVersion"] >= 36
        assert found["title"] and found["templating"]["list"][0]["type"] == "datasource"
        assert "id" not in found  # Grafana gives it
        ids = [each["id"] for each in found["panels"]]
        assert len(ids) == len(set(ids))

    @pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
    def test_panels_do_not_overlap(self, path):
        taken = set()
        for each in board(path)["panels"]:
            place = each["gridPos"]
            assert set(place) == PLACE and place["x"] + place["w"] <= 24
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, each["title"]
            taken |= cells

    @pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
    def test_every_query_goes_to_the_chosen_source_with_known_variables(self, path):
        known = {each["name"] for each in board(path)["templating"]["list"]}
        for each in panels(path):
            assert each["datasource"]["uid"] == "${datasource}"
            assert each["fieldConfig"]["defaults"]["unit"]
            refs = [target["refId"] for target in each["targets"]]
            assert len(refs) == len(set(refs))
            for target in each["targets"]:
                used = set(re.findall(r"\$\{?(\w+)\}?", target["expr"])) - {"__rate_interval"}
                assert used <= known, each["title"]

    @pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
    def test_choices_are_labels_of_metrics(self, path, labels_of):
        for variable in board(path)["templating"]["list"][1:]:
            query = variable["query"]["query"]
            name, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", query).groups()
            assert label in labels_of[name]


class TestRules:
    def test_the_page_has_advice_for_every_alert(self):
        page = (ROOT / "docs" / "operate" / "metrics.md").read_text()

        assert [name for name in ALERTS if f"| `{name}` |" not in page] == []

    def test_an_alert_has_a_severity_and_a_description(self):
        for rule in ALERTS.values():
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert set(rule["annotations"]) == {"summary", "description"}

    @pytest.mark.skipif(PORTABLE, reason="metrics of the machine are of /proc")
    def test_the_text_of_an_alert_uses_labels_that_it_has(self, labels_of):
        for name, rule in ALERTS.items():
            known = set()
            for selector in selectors(promql_parser.parse(rule["expr"])):
                known |= labels_of[selector.name]
            for by in re.findall(r"\bby \(([^)]*)\)", rule["expr"]):
                known = set(re.split(r",\s*", by))

            used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))

            assert used <= known, name

    @pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
    @pytest.mark.parametrize("what", ["rules", "config"])
    def test_prometheus_takes_the_files(self, what):
        names = ("prometheus.yml",) if what == "config" else ("recording.yml", "alerts.yml")
        files = [str(RULES / name) for name in names]

        done = subprocess.run(
            [PROMTOOL, "check", what, *files], capture_output=True, text=True, check=False
        )

        assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
    def test_alerts_come_when_they_should(self, tmp_path):
        tests = yaml.safe_load((Path(__file__).parent / "alerts_test.yml").read_text())
        tests["rule_files"] = [str(RULES / "recording.yml"), str(RULES / "alerts.yml")]
        (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests))

        done = subprocess.run(
            [PROMTOOL, "test", "rules", str(tmp_path / "tests.yml")],
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stdout + done.stderr
