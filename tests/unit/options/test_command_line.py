"""Flags as people type them."""

import pytest

from core import plugins
from core.options import HelpWanted, Options, UsageError, parse, usage
from core.options.command_line import pairs
from frontends.metrics.options import MetricsOptions


def parsed(*arguments):
    return parse(arguments, plugins.flags(), warn=lambda text: None)


def refused(*arguments):
    with pytest.raises(UsageError) as error:
        parsed(*arguments)
    return str(error.value)


def test_a_value_follows_an_equals_sign_or_a_space():
    assert parsed("--http-port=1234").value("http_port") == 1234
    assert parsed("--http-port", "1234").value("http_port") == 1234


def test_a_value_may_hold_equals_signs_and_dashes():
    assert parsed("--id=a=b").id == "a=b"
    assert parsed("--id", "--x").id == "--x"


@pytest.mark.parametrize("word", ["true", "TRUE", "on", "On", "1"])
def test_texts_for_true(word):
    assert parsed(f"--model-namespacing={word}").model_namespacing is True


@pytest.mark.parametrize("word", ["false", "False", "off", "OFF", "0"])
def test_texts_for_false(word):
    assert parsed(f"--allow-http={word}").value("allow_http") is False


def test_another_text_is_neither():
    assert refused("--allow-http=maybe") == (
        'Bad option: "--allow-http".\ninvalid value for bool option: maybe'
    )


def test_the_last_of_two_values_counts():
    assert parsed("--http-port=1", "--http-port=2").value("http_port") == 2


def test_repositories_add_up_sorted_and_once():
    options = parsed("--model-repository=b", "--model-store=a", "--model-repository=b")
    assert options.model_repository == ["a", "b"]


def test_the_beginning_of_a_name_is_enough_when_only_one_begins_so():
    assert parsed("--model-rep=x").model_repository == ["x"]


def test_an_ambiguous_prefix_is_refused_with_the_candidates():
    text = refused("--http-p=1", "--http-m=2")
    assert "option '--http-m=2' is ambiguous" in text
    assert "'--http-max-body-size' '--http-max-connections'" in text


def test_an_unknown_flag_is_refused_with_the_nearest_one():
    text = refused("--http-prot=1")
    assert text == "unrecognized option '--http-prot=1'; did you mean '--http-port'?"


def test_an_argument_without_dashes_is_refused():
    assert refused("models/") == "Unexpected argument: models/"
    assert refused("--", "--id=x") == "Unexpected argument: --id=x"


def test_a_missing_value_is_refused():
    assert refused("--id") == "option '--id' requires an argument"


@pytest.mark.parametrize("flag", ["disable-auto-complete-config", "model-namespacing"])
def test_a_boolean_needs_no_value_and_takes_no_other_flag_for_one(flag):
    field = flag.replace("-", "_")
    assert parsed(f"--{flag}", "--id=x").value(field) is True
    assert parsed("--id=x", f"--{flag}").value(field) is True
    assert parsed(f"--{flag}=true").value(field) is True
    assert parsed(f"--{flag}=off").value(field) is False
    assert "invalid value for bool option: maybe" in refused(f"--{flag}=maybe")


def test_a_boolean_takes_the_next_word_only_if_it_is_one():
    assert parsed("--allow-http", "false", "--id=x").value("allow_http") is False
    assert refused("--allow-http", "maybe") == "Unexpected argument: maybe"


def test_a_boolean_of_a_plugin_does_not_swallow_the_next_flag():
    flags = plugins.flags()
    flags.add("audit", False, "Write an audit.")
    options = parse(["--audit", "--http-port=19000"], flags)
    assert (options.value("audit"), options.value("http_port")) == (True, 19000)


def test_words_that_are_no_flags_are_collected_for_a_program_that_takes_some():
    words = []
    given = list(pairs(["a", "--id", "b", "c", "--", "--d"], plugins.flags(), words))
    assert (given, words) == ([("id", "b")], ["a", "c", "--d"])


def test_help_is_no_error_of_the_command_line():
    with pytest.raises(HelpWanted):
        parsed("--id=x", "--help")


@pytest.mark.parametrize(
    "argument",
    [
        "--http-port=abc",
        "--http-port=8x",
        "--http-port=65536",
        "--exit-timeout-secs=-1",
        "--grpc-infer-thread-count=1",
        "--http-max-input-size=0",
        "--metrics-interval-ms=soon",
    ],
)
def test_a_number_that_cannot_be_is_refused_with_its_text(argument):
    flag, _, text = argument.partition("=")
    assert refused(argument).startswith(f'Bad option: "{flag}".\nInvalid option value. Got {text}')


def test_an_unknown_choice_is_refused_with_the_choices():
    text = refused("--model-control-mode=sometimes")
    assert text.startswith(
        'Bad option: "--model-control-mode".\ninvalid argument for --model-control-mode'
    )
    assert "none, poll, explicit" in text


def test_verbosity_is_a_number_or_a_boolean():
    assert parsed("--log-verbose=3").log_verbose == 3
    assert parsed("--log-verbose=true").log_verbose == 1


def test_a_pattern_that_is_no_regular_expression_is_refused():
    assert "invalid regular expression '('" in refused("--http-header-forward-pattern=(")


def test_metrics_listen_at_the_address_of_http_by_default():
    for options, address in (
        (parsed("--http-address=127.0.0.1"), "127.0.0.1"),
        (parsed("--http-address=unix:/s"), "127.0.0.1"),
        (parsed("--metrics-address=::1"), "::1"),
        (Options.defaults(http_address="x"), "x"),
    ):
        assert MetricsOptions.of(options).metrics_address == address


def test_defaults_are_fresh_for_each_server():
    Options.defaults().model_repository.append("x")
    assert Options.defaults().model_repository == []


def test_help_names_every_flag():
    flags = plugins.flags()
    text = usage(flags)
    assert [flag.name for flag in flags.rows if f"--{flag.name}" not in text] == []
    assert "--model-store" in text and "--trace-rate" in text
