"""--secure: the options that it changes, keeps, and requires."""

import re
from pathlib import Path

import pytest

from core import options as core_options
from core import plugins
from core.errors import CoreError, Kind
from core.options import Options, check_server
from frontends.metrics.options import MetricsOptions
from frontends.shared.options import SharedOptions
from frontends.shared.secure import PROFILE, is_local

NEEDED = ["--model-repository=models", "--auth-tokens=tokens"]
PAGE = Path(__file__).parents[3] / "docs" / "operate" / "security.md"


def parse(arguments):
    return core_options.parse(arguments, plugins.flags())


def refusal(*flags):
    with pytest.raises(CoreError) as caught:
        check_server(parse(["--secure", "--model-repository=models", *flags]))
    assert caught.value.kind is Kind.INVALID
    return caught.value.message


def test_without_flags_it_is_for_this_machine_and_changes_no_option():
    options = parse(["--secure", *NEEDED])

    check_server(options)
    assert (options.value("http_address"), options.value("grpc_address")) == (
        "127.0.0.1",
        "127.0.0.1",
    )
    assert MetricsOptions.of(options).metrics_address == "127.0.0.1"
    assert (options.model_control_mode, options.value("auth_open")) == ("none", ("health",))
    assert not (options.allow_client_shm or options.allow_remote_settings)


def test_a_given_flag_stays_and_is_logged():
    options = parse(["--secure", *NEEDED, "--allow-client-shm=true", "--model-control=explicit"])

    assert (options.allow_client_shm, options.model_control_mode) == (True, "explicit")
    assert "--secure: --allow-client-shm was given and stays true" in options.notes
    assert "--secure: --model-control-mode was given and stays explicit" in options.notes
    assert (
        "--secure: clients change no settings of log and traces; --allow-remote-settings says otherwise"
        in options.notes
    )


def test_without_it_options_are_unchanged():
    assert parse(NEEDED) == parse([*NEEDED, "--http-address=0.0.0.0"])
    assert parse(NEEDED).notes == ()


def test_metrics_do_not_follow_http_to_other_machines():
    options = parse(["--secure", *NEEDED, "--http-address=0.0.0.0", "--secure-without-tls"])

    check_server(options)
    assert MetricsOptions.of(options).metrics_address == "127.0.0.1"


def test_at_least_one_caller_must_be_known():
    text = refusal()

    assert "--secure needs to know who calls" in text
    assert "core token NAME --role infer --file tokens.txt" in text
    assert "--auth-jwks" in text


@pytest.mark.parametrize(
    "flags",
    [
        ["--auth-tokens=tokens"],
        ["--auth-jwks=keys"],
        ["--http-use-ssl-mutual=true", "--grpc-use-ssl-mutual=true"],
        ["--http-use-ssl-mutual=true", "--allow-grpc=false"],
    ],
)
def test_each_way_to_identify_callers_is_enough(flags):
    check_server(parse(["--secure", "--model-repository=models", *flags]))


def test_certificates_of_one_protocol_are_not_enough():
    assert "--secure needs to know who calls" in refusal("--http-use-ssl-mutual=true")


@pytest.mark.parametrize("name", ["http", "grpc", "metrics"])
def test_other_machines_are_served_over_tls_only(name):
    text = refusal("--auth-tokens=tokens", f"--{name}-address=0.0.0.0")

    assert f"--{name}-address=0.0.0.0 can be reached from other machines" in text
    assert f"--{name}-use-ssl=true, or say --secure-without-tls" in text
    served = [f"--{name}-address=0.0.0.0", f"--{name}-use-ssl=true"]
    files = ["--http-server-cert=c", "--http-server-key=k"]
    check_server(parse(["--secure", *NEEDED, *served, *files]))
    check_server(parse(["--secure", *NEEDED, served[0], "--secure-without-tls"]))
    check_server(parse(["--secure", *NEEDED, served[0], f"--allow-{name}=false"]))


def test_the_waiver_alone_has_no_effect():
    with pytest.raises(CoreError, match="--secure-without-tls has a meaning with --secure only"):
        check_server(parse([*NEEDED, "--secure-without-tls"]))


@pytest.mark.parametrize(
    "address,local",
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("unix:/run/core.sock", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("", False),
        ("localhost.example.org", False),
    ],
)
def test_an_address_is_of_this_machine_or_not(address, local):
    assert is_local(address) is local


def test_metrics_over_tls_need_a_certificate():
    with pytest.raises(CoreError, match="--metrics-use-ssl needs the certificate of --http-server"):
        check_server(parse([*NEEDED, "--metrics-use-ssl=true"]))


def test_a_server_in_a_program_knows_the_profile():
    from frontends.in_process.options import options_of

    options = options_of({"secure": True, "auth_tokens": "tokens"})
    assert (options.value("http_address"), options.allow_remote_settings) == ("127.0.0.1", False)


def test_a_program_gives_the_open_ports_as_a_list():
    from frontends.in_process.options import options_of

    assert options_of({"auth_open": ["health", "metrics"]}).value("auth_open") == (
        "health",
        "metrics",
    )
    assert options_of({"auth_open": []}).value("auth_open") == ()
    with pytest.raises(CoreError, match="'nothing' is none of health, metadata"):
        options_of({"auth_open": ["nothing"]})
    with pytest.raises(CoreError, match="option 'auth_open' takes"):
        options_of({"auth_open": [1]})


def test_every_change_is_in_the_table_of_the_page():
    rows = re.findall(r"^\| (`--.*?) \|", PAGE.read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`--([\w-]+)`", row)}

    assert {name.replace("_", "-") for name in PROFILE} <= named


def test_every_flag_of_the_group_is_on_the_page():
    text = PAGE.read_text()
    flags = [flag.name for flag in plugins.flags().rows if flag.group == "Security"]
    assert [name for name in flags if f"--{name}" not in text] == []


def test_defaults_are_open():
    options = Options.defaults()
    assert not SharedOptions.of(options).secure
    assert options.allow_remote_settings
