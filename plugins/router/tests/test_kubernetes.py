"""Servers in the pods of a Service of Kubernetes, before a server that speaks its API."""

import pytest
from core_router.servers import kubernetes
from core_router.servers.addresses import read_servers
from core_router.servers.kubernetes_api import KubernetesApi
from routing.kubernetes import KubernetesServer, endpoint, endpoint_slice
from routing.requests import ask, inputs, outputs, until

from core.errors import CoreError


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(kubernetes, "_LEAST_S", 0.02)
    monkeypatch.setattr(kubernetes, "_MOST_S", 0.05)


@pytest.fixture
def cluster(thread, certificates):
    found = KubernetesServer(thread, certificates.serving())
    yield found
    found.is_away = False
    found.close()


@pytest.fixture
def account(tmp_path, certificates):
    (tmp_path / "token").write_text("first\n")
    with open(certificates.root) as root:
        (tmp_path / "ca.crt").write_text(root.read())
    return tmp_path


@pytest.fixture
def source(cluster, account):
    """Return a function that makes the source of the Service. ports: as in --servers."""

    def make(ports=":8000"):
        (found,) = read_servers(
            f"kubernetes://ml/models{ports}", api=KubernetesApi(cluster.url, account)
        )
        return found

    return make


def hosts(thread, source):
    return [each.host for each in thread.run(source.addresses())]


def names(router):
    return sorted(router.servers())


def test_pods_come_and_go(cluster, source, route, three):
    """The first pod is a server of this process; nothing listens at the addresses of the others."""
    port = three[0].port
    cluster.put(
        endpoint_slice("models-a", endpoint("127.0.0.1"), endpoint("127.0.0.2", ready=False))
    )
    router = route([], sources=[source(f":{port}")], resolve_s=60.0)
    assert names(router) == [f"127.0.0.1:{port}"]
    assert outputs(ask(router.port, "/v2/models/who/infer", inputs(1.0))) == [1, 0]

    cluster.put(endpoint_slice("models-a", endpoint("127.0.0.1"), endpoint("127.0.0.2")))
    until(lambda: names(router) == [f"127.0.0.1:{port}", f"127.0.0.2:{port}"])

    # A pod that ends is no longer ready, and answers what it has.
    ending = endpoint("127.0.0.1", ready=False, terminating=True)
    cluster.put(endpoint_slice("models-a", ending, endpoint("127.0.0.2")))
    cluster.put(endpoint_slice("models-b", endpoint("127.0.0.3")))
    until(lambda: names(router) == [f"127.0.0.2:{port}", f"127.0.0.3:{port}"])

    cluster.delete("models-a")
    until(lambda: names(router) == [f"127.0.0.3:{port}"])
    assert cluster.lists == 1


def test_a_watch_goes_on_where_it_ended(cluster, source, route, three):
    cluster.put(endpoint_slice("models-a", endpoint("127.0.0.1")))
    router = route([], sources=[source(f":{three[0].port}")], resolve_s=60.0)
    until(lambda: cluster.watches == 1)

    cluster.end_watches()
    until(lambda: cluster.watches > 1)
    cluster.put(endpoint_slice("models-a", endpoint("127.0.0.2")))
    until(lambda: names(router) == [f"127.0.0.2:{three[0].port}"])
    assert cluster.lists == 1


def test_a_version_that_is_too_old_leads_to_a_new_list(cluster, source, route, three):
    cluster.put(endpoint_slice("models-a", endpoint("127.0.0.1")))
    router = route([], sources=[source(f":{three[0].port}")], resolve_s=60.0)
    until(lambda: cluster.watches == 1)

    cluster.slices["models-b"] = endpoint_slice("models-b", endpoint("127.0.0.2"))  # no event
    cluster.expire()

    until(lambda: len(names(router)) == 2)
    assert cluster.lists == 3  # two pages now


def test_servers_stay_while_the_api_is_away(cluster, source, route, three, caplog):
    cluster.put(endpoint_slice("models-a", endpoint("127.0.0.1")))
    router = route([], sources=[source(f":{three[0].port}")], resolve_s=0.05)
    until(lambda: cluster.watches == 1)

    cluster.is_away = True
    cluster.end_watches()
    until(lambda: "the servers stay as they were" in caplog.text)
    assert outputs(ask(router.port, "/v2/models/who/infer", inputs(1.0))) == [1, 0]
    cluster.is_away = False
    cluster.put(endpoint_slice("models-b", endpoint("127.0.0.2")))

    until(lambda: len(names(router)) == 2)


def test_the_token_is_read_again(cluster, source, route, three, account, caplog):
    cluster.put(endpoint_slice("models-a", endpoint("127.0.0.1")))
    router = route([], sources=[source(f":{three[0].port}")], resolve_s=60.0)
    until(lambda: cluster.watches == 1)

    cluster.token = "second"
    cluster.end_watches()
    until(lambda: "answers 401: Unauthorized; the router's service account needs" in caplog.text)
    (account / "token").write_text("second\n")
    cluster.put(endpoint_slice("models-b", endpoint("127.0.0.2")))

    until(lambda: len(names(router)) == 2)
    assert cluster.tokens[-1] == "second"


def test_ports_may_have_names(cluster, source, thread):
    ports = [("http", 8080), ("grpc", 9090), ("metrics", 7070)]
    cluster.put(endpoint_slice("models-a", endpoint("10.0.0.1"), ports=ports))
    cluster.put(endpoint_slice("models-b", endpoint("10.0.0.2"), ports=[("other", 1)]))

    (found,) = thread.run(source(":http:grpc:metrics").addresses())
    assert (found.host, found.port, found.grpc_port, found.metrics_port) == (
        "10.0.0.1",
        8080,
        9090,
        7070,
    )
    numbers = thread.run(source("").addresses())
    assert {(each.port, each.grpc_port, each.metrics_port) for each in numbers} == {
        (8000, 8001, 8002)
    }


def test_a_service_without_servers_is_explained(cluster, source, thread, caplog):
    thread.run(source().addresses())
    assert "kubernetes://ml/models: no pod is ready" in caplog.text

    cluster.put(endpoint_slice("models-a", endpoint("10.0.0.1"), ports=[("other", 1)]))
    thread.run(source(":http:grpc").addresses())
    assert "its pods have no ports named 'http' and 'grpc'" in caplog.text


def test_a_pod_with_two_addresses_is_one_server(cluster, source, thread):
    cluster.put(endpoint_slice("models-a", endpoint("fd00::1"), kind="IPv6"))
    assert hosts(thread, source()) == ["fd00::1"]

    cluster.put(endpoint_slice("models-b", endpoint("10.0.0.1")))
    assert hosts(thread, source()) == ["10.0.0.1"]


def test_the_number_of_servers_is_bounded(cluster, source, thread, monkeypatch):
    monkeypatch.setattr(kubernetes, "_MOST_SERVERS", 10)
    cluster.put(endpoint_slice("models-a", *[endpoint(f"10.0.0.{each}") for each in range(20)]))

    assert len(hosts(thread, source())) == 10


def test_conditions_that_are_not_set_count_as_ready(cluster, source, thread):
    cluster.put(endpoint_slice("models-a", {"addresses": ["10.0.0.1"], "conditions": {}}))

    assert hosts(thread, source()) == ["10.0.0.1"]


def test_a_certificate_of_the_api_that_is_not_the_clusters_is_refused(
    cluster, source, thread, account
):
    (account / "ca.crt").write_text("")

    with pytest.raises(OSError, match=r"ca\.crt' holds no certificates"):
        thread.run(source().addresses())


def test_an_api_without_tls_needs_no_account(thread, tmp_path):
    proxy = KubernetesServer(thread, None, token="")
    proxy.put(endpoint_slice("models-a", endpoint("10.0.0.1")))
    (found,) = read_servers("kubernetes://ml/models", api=KubernetesApi(proxy.url, tmp_path))

    assert hosts(thread, found) == ["10.0.0.1"]
    assert proxy.tokens == [""]
    proxy.close()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("kubernetes://models", "is no service of Kubernetes"),
        ("kubernetes://ml/models:99999", "is no service of Kubernetes"),
        ("kubernetes://ml/Models", "is no service of Kubernetes"),
        ("kubernetes://ml/models", "no KUBERNETES_SERVICE_HOST"),
    ],
)
def test_what_is_wrong_is_said(text, error, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(CoreError, match=error):
        read_servers(text)


def test_in_a_pod_the_environment_says_where_the_api_is(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    assert KubernetesApi().url == "https://10.96.0.1:443"
    with pytest.raises(CoreError, match=r"token' cannot be read: .* automountServiceAccountToken"):
        read_servers("kubernetes://ml/models", api=KubernetesApi(account=tmp_path))


@pytest.mark.parametrize("host", ["kubernetes1", "kubernetes", "kubernetes.example"])
def test_a_host_may_have_a_name_that_begins_like_the_scheme(host, thread):
    (source,) = read_servers(f"{host}:8000")

    (found,) = thread.run(source.addresses())
    assert (found.host, found.port) == (host, 8000)


def test_pods_with_tls_have_certificates_for_the_service(cluster, account, thread):
    cluster.put(endpoint_slice("models-a", endpoint("10.0.0.1")))
    (found,) = read_servers("kubernetes+https://ml/models", api=KubernetesApi(cluster.url, account))

    assert thread.run(found.addresses())[0].tls.name == "models.ml.svc"
