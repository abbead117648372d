"""The metrics of all servers as those of one."""

import asyncio

import pytest
from core_router.operate.server_metrics import ServerMetrics
from core_router.servers.load_reports import LoadReports
from core_router.servers.server import Address, Server
from core_router.servers.tls import ServerCertificates, ServerTls
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

    def join(self, server, text="# none yet\n"):
        for _ in self.metrics.join(server, text.encode()):
            pass
        return self

    def leave(self, server, text):
        self.metrics.leave(server, text.encode())

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
        .join("one:1")
        .join("two:2")
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
    assert sums.value("requests_total", model="b", version="1") == 23
    assert not [labels for _, labels, _ in sums.samples() if labels.get("server") == "one:1"]


def test_what_a_server_counted_before_its_leaving_stays(sums):
    sums.leave("one:1", TEXT.format(a=1, b=7, use=1))  # counts that no scrape has seen

    assert sums.value("requests_total", model="b", version="1") == 27
    assert not [labels for _, labels, _ in sums.samples() if labels.get("server") == "one:1"]


def test_what_a_server_has_counted_elsewhere_is_not_added(sums):
    """Neither what it counted before it joined, nor what it counted while it was away."""
    sums.join("three:3", TEXT.format(a=1000, b=1000, use=1))
    assert sums.value("requests_total", model="b", version="1") == 22

    sums.add("three:3", TEXT.format(a=1001, b=1000, use=1))
    sums.leave("three:3", "")
    sums.join("three:3", TEXT.format(a=5000, b=5000, use=1))  # or 5, after a restart
    sums.add("three:3", TEXT.format(a=5001, b=5000, use=1))
    assert sums.value("requests_total", model="a", version="1") == 13

    sums.add("three:3", TEXT.format(a=4, b=5, use=1))  # started again while it is in the list
    assert sums.value("requests_total", model="a", version="1") == 17


def test_a_series_begins_at_zero_with_the_server_that_has_it_first():
    sums = Sums().join("one:1", TEXT.format(a=9, b=9, use=1))

    assert sums.value("requests_total", model="a", version="1") == 0


def test_metrics_of_a_server_that_has_not_joined_are_not_added(sums):
    sums.add("pod:1", TEXT.format(a=1, b=1, use=1))

    assert sums.value("requests_total", model="a", version="1") == 11
    assert len(sums.metrics._last) == 2


def test_older_metrics_stop_where_newer_ones_begin(sums):
    """A scrape takes the metrics of a server in parts; it may leave meanwhile."""
    many = "# TYPE many counter\n" + "".join(f'many{{n="{n}"}} 1\n' for n in range(1000))
    scrape = sums.metrics.add("one:1", many.encode())
    next(scrape)
    sums.leave("one:1", many)

    assert list(scrape) == []
    assert sum(value for name, _, value in sums.samples() if name == "many_total") == 1000


def test_lines_without_a_meaning_are_left_out():
    sums = (
        Sums()
        .join("one:1")
        .add("one:1", '# a comment\nbroken\n# TYPE x counter\nx{} 1\nx{le="a b"} no\n\n')
    )

    assert sums.samples() == [("x_total", {}, 1)]


def test_one_scrape_has_the_metrics_of_the_router_and_of_all_servers(route, three):
    router = route([each.reporting for each in three])
    until(lambda: all(each.metrics for each in router.router.table.servers.values()))
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


def counting(count, start):
    return (
        f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {start}\n"
        f"# TYPE n counter\nn {count}\n"
    ).encode()


def test_a_restart_between_two_scrapes_loses_no_counts(route, scripted):
    server = scripted(good)
    server.metrics = counting(100, start=1)
    router = route([f"{server.name}:1:{server.name.rpartition(':')[2]}"])
    (found,) = router.router.table.servers.values()

    until(lambda: found.metrics)

    def read(text):
        server.metrics = text
        until(lambda: found.metrics == text)

    read(counting(107, start=1))
    read(counting(5, start=2))
    read(b"")
    read(counting(2, start=3))

    assert router.metric("n") == 7 + 5 + 2


class Reports:
    """The reports of a server whose metrics a test gives, and their sums."""

    def __init__(self):
        self.sums = Sums()
        server = Server(Address("127.0.0.1", 1, 2, 3))
        tls = ServerTls(ServerCertificates())
        self._reports = LoadReports(server, self.sums.metrics, None, 1.0, 1.0, {}, tls)

    def take(self, *texts):
        for text in texts:
            asyncio.run(self._reports._count(self._reports.server.metrics, text))
            self._reports.server.metrics = text

    def scrape(self):
        server = self._reports.server
        self.sums.add(server.name, server.metrics.decode())
        return self.sums.value("n_total")


NONE_YET, AWAY = counting(0, start=1), b""


@pytest.mark.parametrize(
    "texts",
    [
        (counting(100, start=1), counting(150, start=2)),
        (counting(100, start=1), AWAY, counting(150, start=2)),
        (counting(100, start=1), counting(3, start=2), counting(150, start=2)),
        (counting(100, start=1), AWAY, counting(3, start=1), counting(150, start=1)),
    ],
)
@pytest.mark.parametrize("is_scraped", [False, True])
def test_a_process_that_counts_beyond_the_one_before_loses_no_counts(texts, is_scraped):
    reports = Reports()
    reports.take(NONE_YET)
    for text in texts:
        reports.take(text)
        if is_scraped:
            reports.scrape()

    assert reports.scrape() == 250


@pytest.mark.parametrize("between", [AWAY, b"# TYPE n counter\nn 100\n"])
def test_metrics_that_were_away_are_not_counted_twice(between):
    reports = Reports()
    reports.take(NONE_YET, counting(100, start=1), between, counting(120, start=1))

    assert reports.scrape() == 120


def test_a_server_without_metrics_leaves_those_of_the_others(route, three, scripted):
    router = route([three[0].reporting, scripted(good).name])

    until(lambda: "nv_cpu_utilization" in ask(router.admin, "/metrics").body.decode())
