"""The benchmark's command line."""

import pytest

from benchmarks import options
from benchmarks.scenarios import SCENARIOS


def test_without_options_it_is_the_short_form_with_every_server():
    chosen = options.parse([])

    assert (chosen.connections, chosen.rounds) == ([1, 16], 3)
    assert chosen.server == ["core", "triton", "mlserver", "fastapi"]


def test_the_full_form_has_every_scenario():
    assert options.parse(["--full"]).scenario == list(SCENARIOS)


def test_given_options_win_over_the_form():
    chosen = options.parse(["--full", "--connections", "2", "--scenario", "mlp"])

    assert (chosen.connections, chosen.scenario) == ([2], ["mlp"])
    assert chosen.rounds == options.FULL["rounds"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scenario", "nothing"], "invalid choice: 'nothing' (choose from"),
        (["--server", "torchserve"], "invalid choice: 'torchserve'"),
        (["--connections", "0"], "argument --connections: must be at least 1"),
        (["--rounds", "many"], "argument --rounds: 'many' is no whole number"),
        (["--seconds", "0.1"], "argument --seconds: '0.1' is no number from 1 to 3600"),
        (["--server-core", "9999"], "--server-core 9999: this process may use 0"),
    ],
)
def test_a_wrong_option_is_reported(words, message, capsys):
    with pytest.raises(SystemExit) as ended:
        options.parse(words)

    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCHMARK_CACHE", str(tmp_path))

    assert options.parse([]).cache == tmp_path
