"""What a client may name: schemes, hosts, addresses, folders. Everything else is refused."""

import ipaddress
import os
import socket

import pytest
from backend_video import addresses
from backend_video.addresses import connect, is_allowed, is_public, resolve
from backend_video.rules import is_file, split_url
from backend_video.settings import settings_of
from backend_video.stop import Stop

from core.config import ModelConfig
from core.errors import CoreError, Kind


@pytest.fixture
def rules(tmp_path):
    """rules(**parameters): the rules of a model in tmp_path."""

    def run(**parameters):
        config = ModelConfig(name="m")
        for key, value in parameters.items():
            config.parameters[key].string_value = value
        return settings_of(config, tmp_path).rules

    return run


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("ff0e::1", False),
        ("::ffff:10.0.0.1", False),
        ("::10.0.0.1", False),
        ("64:ff9b::a00:1", False),  # NAT64 of 10.0.0.1
        ("64:ff9b::808:808", True),
        ("2002:a00:1::", False),  # 6to4 of 10.0.0.1
        ("2001:0:1:1::f5ff:fffe", False),  # Teredo of 10.0.0.1
    ],
)
def test_which_addresses_are_public(address, public):
    assert is_public(ipaddress.ip_address(address)) is public


def test_networks_allow_addresses_that_are_not_public():
    networks = [ipaddress.ip_network("10.1.0.0/16")]

    assert is_allowed(ipaddress.ip_address("10.1.2.3"), networks)
    assert is_allowed(ipaddress.ip_address("::ffff:10.1.2.3"), networks)
    assert not is_allowed(ipaddress.ip_address("10.2.0.1"), networks)


@pytest.mark.parametrize(
    ("hosts", "url", "allowed"),
    [
        ("", "http://a.example/x", False),
        ("a.example", "http://a.example/x", True),
        ("a.example", "http://A.Example./x", True),
        ("a.example", "http://a.example:8080/x", False),
        ("a.example:8080", "http://a.example:8080/x", True),
        ("a.example:*", "rtsp://a.example:8554/x", True),
        ("*.example", "rtsp://cam.a.example/x", True),
        ("*.example", "rtsp://example/x", False),
        ("*.example", "http://evil.test/#.example", False),
        ("*.example", "http://evil.test?.example", False),
        ("a.example", "http://a.example@evil.test/", False),
        ("[::1]:8554", "rtsp://[::1]:8554/x", True),
        ("*", "https://anything.test/x", True),
    ],
)
def test_hosts_and_ports_that_may_be_named(rules, hosts, url, allowed):
    made = rules(hosts=hosts)

    if allowed:
        assert made.place_of(url).scheme == url.partition(":")[0]
        return
    with pytest.raises(CoreError) as error:
        made.place_of(url)
    assert error.value.kind is Kind.FORBIDDEN
    assert "the parameter 'hosts' of the model's config.pbtxt" in error.value.message


@pytest.mark.parametrize(
    "url",
    ["gopher://a/x", "concat:/etc/passwd", "http:///x", "http://a b/", "http://a:99999/", "http://ä/",
     "http://a\n.example/", "http://a\\b/", "rtsp://a:0/", "http://" + "a" * 5000],
)  # fmt: skip
def test_urls_of_other_forms_are_invalid(rules, url):
    with pytest.raises(CoreError) as error:
        rules(hosts="*").place_of(url)
    assert error.value.kind is Kind.INVALID


def test_a_password_is_in_no_text(rules):
    url = "rtsp://user:secret@a.example/film?token=secret"

    assert "secret" not in split_url(url).shown
    with pytest.raises(CoreError) as error:
        rules(hosts="b.example").place_of(url)
    assert "secret" not in error.value.message


def test_schemes_can_be_restricted(rules):
    with pytest.raises(CoreError, match=r"scheme 'http' is not allowed.* allows rtsp"):
        rules(hosts="*", schemes="rtsp").place_of("http://a.example/")


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (
            {"hosts": "http://a"},
            "parameter 'hosts' of config.pbtxt is 'http://a', it must be a list",
        ),
        ({"hosts": "a:0"}, "HOST:PORT"),
        ({"networks": "10.0.0.0/99"}, "'networks' of config.pbtxt is '10.0.0.0/99'"),
        (
            {"folders": "nowhere"},
            "'folders' of config.pbtxt is 'nowhere', it must be a list of folders",
        ),
        ({"schemes": "ftp"}, "it must be a list of file, http, https, rtsp"),
        ({"threads": "0"}, "it must be a whole number from 1 to 64"),
        ({"format": "YUV"}, "it must be RGB or BGR or NV12"),
        ({"rate": "-1"}, "it must be a number from 0 to 1000"),
    ],
)
def test_wrong_parameters_of_a_model_are_named(rules, parameters, text):
    with pytest.raises(CoreError, match=text) as error:
        rules(**parameters)
    assert error.value.message.startswith("model 'm': ")


def test_files_are_read_below_the_folders_only(rules, tmp_path):
    films, other = tmp_path / "films", tmp_path / "other"
    (films / "a").mkdir(parents=True)
    other.mkdir()
    (films / "a" / "x").write_bytes(b"inside")
    (other / "x").write_bytes(b"outside")
    (films / "out").symlink_to(other / "x")
    (films / "folder").symlink_to(other)
    (films / "in").symlink_to(films / "a" / "x")
    made = rules(folders="films")

    for url in ("a/x", "in", f"file://{films}/a/x", f"file:{films}/a/x", "a/../in"):
        with made.open_file(url) as file:
            assert file.read() == b"inside"
    for url in (
        "out",
        "folder/x",
        "../other/x",
        f"file://{other}/x",
        "file:///etc/passwd",
        "a/../../x",
    ):
        with pytest.raises(CoreError) as error:
            made.open_file(url)
        assert error.value.kind is Kind.FORBIDDEN
    with pytest.raises(CoreError) as error:
        made.open_file("a/y")
    assert error.value.kind is Kind.NOT_FOUND


def test_a_path_has_4096_characters_at_most(rules, tmp_path):
    (tmp_path / "films").mkdir()

    for url in ("a/" * 2049, "file:///" + "a/" * 2049):
        with pytest.raises(CoreError, match=r"the path has 4\d\d\d characters; it may have 4096"):
            rules(folders="films").open_file(url)


def test_only_regular_files_are_read_and_no_pipe_blocks(rules, tmp_path):
    (tmp_path / "films" / "a").mkdir(parents=True)
    os.mkfifo(tmp_path / "films" / "pipe")
    made = rules(folders="films")

    for url in ("pipe", "a"):
        with pytest.raises(CoreError, match=f"'{url}' is no regular file"):
            made.open_file(url)


def test_no_folder_means_no_file(rules):
    with pytest.raises(CoreError, match=r"'folders' of the model's config.pbtxt names none"):
        rules().open_file("/etc/passwd")
    assert is_file("/etc/passwd") and is_file("film.mp4") and is_file("FILE:///x")
    assert not is_file("http://a/x") and not is_file("concat:x")


def test_a_name_is_resolved_once_and_the_connection_goes_to_that_address(monkeypatch, listener):
    """DNS rebinding: the second answer of the resolver would be another address."""
    port = listener.getsockname()[1]
    real = socket.getaddrinfo
    asked = []

    def changing(host, *rest, flags=0, **more):
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "127.0.0.9"
        return real(address, port, type=socket.SOCK_STREAM)

    monkeypatch.setattr(addresses.socket, "getaddrinfo", changing)
    networks = [ipaddress.ip_network("127.0.0.1")]
    stop = Stop()

    found = resolve("changing.test", port, networks, stop, 5)
    made = connect("changing.test", found, stop, 5)

    assert made.getpeername()[0] == "127.0.0.1"
    assert asked == ["changing.test"]
    made.close()
    with pytest.raises(CoreError, match=r"'changing.test' has no public address"):
        resolve("changing.test", port, networks, stop, 5)


@pytest.mark.parametrize(
    "host", ["127.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_other_spellings_of_an_address_are_that_address(host):
    place = split_url(f"http://{host}/")

    with pytest.raises(CoreError, match="has no public address"):
        resolve(place.host, 80, (), Stop(), 5)


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
def test_a_host_that_cannot_be_a_name_is_invalid(host):
    with pytest.raises(CoreError, match=f"'{host}' is no name of a host") as error:
        resolve(host, 80, (), Stop(), 5)
    assert error.value.kind is Kind.INVALID
