"""`core COMMAND`: commands of this distribution and of strangers."""

import argparse
import os
import re
import subprocess
import sys

import pytest

import core
from core import plugins
from core.__main__ import main
from core.options import UsageError, parse

COMMAND = """
summary = "count to a number"

def arguments(parser):
    parser.add_argument("number", type=int)

def run(namespace):
    print(*range(1, namespace.number + 1))
    return 3
"""
OWN = """
summary = "print the arguments"

def main(arguments):
    print(list(arguments))
    return 4
"""
FAILS = """
from core.errors import invalid

class Refusing:
    summary = "fail"
    def arguments(self, parser): pass
    def run(self, namespace): raise invalid("there is no reason; try again")

command = Refusing()
"""


def test_a_command_of_a_stranger_gets_its_arguments_and_gives_the_exit_status(install, capsys):
    install("count-up", "[core.commands]\ncount = plug_count\n", {"plug_count": COMMAND})

    assert main(["count", "3"]) == 3
    assert capsys.readouterr().out == "1 2 3\n"


def test_its_summary_is_in_the_list_and_in_its_help(install, capsys):
    install("count-up", "[core.commands]\ncount = plug_count\n", {"plug_count": COMMAND})

    assert main(["--help"]) == 0
    assert re.search("  count +count to a number\n", capsys.readouterr().out)
    with pytest.raises(SystemExit) as end:
        main(["count", "--help"])

    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert "usage: core count" in shown
    assert "count to a number" in shown


def test_arguments_that_do_not_fit_are_status_2(install, capsys):
    install("count-up", "[core.commands]\ncount = plug_count\n", {"plug_count": COMMAND})

    with pytest.raises(SystemExit) as end:
        main(["count", "many"])

    assert end.value.code == 2
    assert "core count: error:" in capsys.readouterr().err


def test_a_core_error_is_printed_and_makes_status_1(install, capsys):
    install("fail-now", "[core.commands]\nrefuse = plug_refuse:command\n", {"plug_refuse": FAILS})

    assert main(["refuse"]) == 1
    assert capsys.readouterr().err == "error: there is no reason; try again\n"


def test_an_unknown_command_names_the_nearest_and_those_that_are_installed(capsys):
    assert main(["tokn"]) == 2

    text = capsys.readouterr().err
    assert "no command named 'tokn'; did you mean 'token'? (installed: " in text
    assert " check, config, " in text


def test_a_command_that_reads_its_own_command_line_gets_all_of_it(install, capsys):
    install("own-words", "[core.commands]\nown = plug_own\n", {"plug_own": OWN})

    assert main(["own", "--help", "-x", "a"]) == 4
    assert capsys.readouterr().out == "['--help', '-x', 'a']\n"


def test_a_command_of_a_distribution_that_is_not_installed_names_the_extra(monkeypatch, capsys):
    monkeypatch.setenv("CORE_BLOCK", "core-encryption")

    assert main(["encrypt"]) == 2
    assert re.fullmatch(
        r"error: the command 'encrypt' is not installed; try: pip install .*'core\[encrypt\]'\n",
        capsys.readouterr().err,
    )
    assert main([]) == 0
    text = capsys.readouterr().out
    assert re.search(
        r"Some commands are not installed; try: pip install .*'core\[commands\]'\n", text
    )


def test_a_file_in_place_of_a_command_is_to_be_served(tmp_path, capsys):
    (tmp_path / "m.onnx").touch()

    assert main([str(tmp_path / "m.onnx")]) == 2
    assert f"to serve it: core serve {tmp_path}/m.onnx" in capsys.readouterr().err


def test_the_version_is_shown_by_a_command_and_a_flag(capsys):
    assert [main(["version"]), main(["--version"])] == [0, 0]

    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert first.startswith(f"core {core.__version__}, backend ABI ")


def test_a_command_that_cannot_be_imported_fails_alone(install, capsys):
    install("count-up", "[core.commands]\ncount = plug_broken\n", {"plug_broken": "1 / 0"})

    assert main(["count"]) == 1
    assert "command 'count' of count-up 1.0 cannot be imported" in capsys.readouterr().err
    assert main([]) == 0
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert main(["plugins"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["check", "config", "explain", "init", "plugins", "token", "version"]
)
def test_the_commands_of_this_distribution_come_by_entry_point(name):
    command = plugins.available_commands()[name].load()

    assert command.summary
    command.arguments(argparse.ArgumentParser())


MISSPELT = """
import core

@core.hookimpl
def core_add_options(parser):
    parser.add("audit", False, "Write an audit.")

@core.hookimpl
def core_layers(modle): ...
"""


def test_a_plugin_that_cannot_be_registered_is_no_working_plugin(install, tmp_path):
    install("audit", "[core.plugins]\naudit = plug_audit\n", {"plug_audit": MISSPELT})

    done = subprocess.run(
        [sys.executable, "-m", "core", "plugins"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "audit")},
        capture_output=True,
        text=True,
        check=False,
    )

    (line,) = [each for each in done.stdout.splitlines() if each.startswith("  audit ")]
    assert "modle" in line
    assert (done.returncode, done.stderr) == (1, "\nerror: audit: see above\n")


def test_a_flag_of_a_plugin_that_is_left_out_says_why(install):
    install("audit", "[core.plugins]\naudit = plug_audit\n", {"plug_audit": "1 / 0"})

    with pytest.raises(UsageError) as error:
        parse(["--audit"], plugins.flags())

    assert "unrecognized option '--audit'; plugin 'audit' is left out: " in str(error.value)
    assert "ZeroDivisionError" in str(error.value)


def test_help_of_a_command_shows_its_arguments(capsys):
    with pytest.raises(SystemExit) as end:
        main(["help", "config"])

    assert end.value.code == 0
    assert "usage: core config" in capsys.readouterr().out
    assert main(["help", "serve"]) == 0
    assert "usage: core serve PATH" in capsys.readouterr().out


def test_a_flag_in_place_of_a_command_is_no_command(capsys):
    assert main(["--prot", "1"]) == 2
    assert "no command named '--prot'" in capsys.readouterr().err
