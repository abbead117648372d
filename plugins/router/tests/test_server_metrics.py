"""The metrics of all servers as those of one."""

import pytest
from core_router.operate.server_metrics import ServerMetrics
from prometheus_client.parser import text_string_to_metric_families
from routing.requests import ask, inputs, until
from routing.running import good

TEXT = """# HELP requests Requests so far
# TYPE requests counter
requests{{model="a",version="1"}} {a}
requests{{model="b",version="1"}} {b}
# HELP seconds Durations
# TYPE seconds histogram
seconds_bucket{{model="a",le="0.1"}} {a}
seconds_bucket{{model="a",le="+Inf"}} {b}
seconds_sum{{model="a"}} 0.5
seconds_count{{model="a"}} {b}
# HELP us Durations
# TYPE us summary
us{{model="a",quantile="0.5"}} {a}
us_sum{{model="a"}} 2
us_count{{model="a"}} {b}
# HELP use Use of the processors
# TYPE use gauge
use {use}
# HELP waiting Waiting
# TYPE waiting gauge
waiting{{model="a"}} 1
"""


class Sums:
    """Metrics to which those of servers are added."""

    def __init__(self):
        self.metrics = ServerMetrics()

    def add(self, server, text):
        for _ in self.metrics.add(server, text.encode()):
            pass
        return self

    def value(self, name, **labels):
        (found,) = [value for each, has, value in self.samples() if (each, has) == (name, labels)]
        return found

    def samples(self):
        text = b"".join(self.metrics.text()).decode()
        return [
            (sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]


@pytest.fixture
def sums():
    return (
        Sums()
        .add("one:1", TEXT.format(a=1, b=2, use=0.25))
        .add("two:2", TEXT.format(a=10, b=20, use=0.5))
    )


def test_counts_and_histograms_are_added(sums):
    assert sums.value("requests_total", model="a", version="1") == 11
    assert sums.value("requests_total", model="b", version="1") == 22
    assert sums.value("seconds_bucket", model="a", le="0.1") == 11
    assert sums.value("seconds_sum", model="a") == 1
    assert sums.value("us_count", model="a") == 22


def test_gauges_and_quantiles_have_the_label_of_their_server(sums):
    assert sums.value("use", server="one:1") == 0.25
    assert sums.value("use", server="two:2") == 0.5
    assert sums.value("waiting", server="one:1", model="a") == 1
    assert sums.value("us", server="two:2", model="a", quantile="0.5") == 10


def test_each_metric_is_described_once(sums):
    text = b"".join(sums.metrics.text()).decode()

    assert text.count("# TYPE requests counter") == text.count("# HELP requests ") == 1


def test_the_same_counts_are_added_once(sums):
    sums.add("one:1", TEXT.format(a=1, b=2, use=1)).add("one:1", TEXT.format(a=4, b=2, use=1))

    assert sums.value("requests_total", model="a", version="1") == 14
    assert sums.value("use", server="one:1") == 1


def test_sums_never_fall(sums):
    sums.add("one:1", TEXT.format(a=0, b=1, use=1))  # started again
    assert sums.value("requests_total", model="b", version="1") == 23

    sums.add("one:1", "")  # not readable
    sums.metrics.forget(["two:2"])  # no longer in the list
    assert sums.value("requests_total", model="b", version="1") == 23
    assert not [labels for _, labels, _ in sums.samples() if labels.get("server") == "one:1"]

    sums.add("one:1", TEXT.format(a=0, b=3, use=1))  # back
    assert sums.value("requests_total", model="b", version="1") == 25


def test_servers_that_have_left_are_forgotten_in_the_long_run():
    sums = Sums()
    for number in range(100):
        sums.add(f"pod:{number}", TEXT.format(a=1, b=1, use=1))
        sums.metrics.forget([f"pod:{number}"])

    assert sums.value("requests_total", model="a", version="1") == 100
    assert len(sums.metrics._last) == 65


def test_lines_without_a_meaning_are_left_out():
    sums = Sums().add("one:1", '# a comment\nbroken\n# TYPE x counter\nx{} 1\nx{le="a b"} no\n\n')

    assert sums.samples() == [("x_total", {}, 1)]


def test_one_scrape_has_the_metrics_of_the_router_and_of_all_servers(route, three):
    router = route([each.reporting for each in three])
    before = router.metric("nv_inference_request_success", model="who")
    for _ in range(30):
        ask(router.port, "/v2/models/who/infer", inputs(1.0))

    until(lambda: router.metric("nv_inference_request_success", model="who") == before + 30)
    assert router.metric("core_router_responses", model="who", status="2xx") == 30
    text = ask(router.admin, "/metrics").body.decode()
    names = [each.name for each in text_string_to_metric_families(text)]
    assert len(names) == len(set(names))
    for each in three:
        assert f'nv_cpu_utilization{{server="{each.name}"}}' in text


def test_a_server_without_metrics_leaves_those_of_the_others(route, three, scripted):
    router = route([three[0].reporting, scripted(good).name])

    until(lambda: "nv_cpu_utilization" in ask(router.admin, "/metrics").body.decode())
