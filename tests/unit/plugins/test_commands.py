"""`python -m core COMMAND`: commands of this distribution and of strangers."""

import argparse
import re

import pytest

from core import plugins
from core.__main__ import main

COMMAND = """
summary = "count to a number"

def arguments(parser):
    parser.add_argument("number", type=int)

def run(namespace):
    print(*range(1, namespace.number + 1))
    return 3
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
    assert re.search("count +count-up 1.0 +count to a number", capsys.readouterr().out)
    with pytest.raises(SystemExit) as end:
        main(["count", "--help"])

    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert "usage: python -m core count" in shown
    assert "count to a number" in shown


def test_arguments_that_do_not_fit_are_status_2(install, capsys):
    install("count-up", "[core.commands]\ncount = plug_count\n", {"plug_count": COMMAND})

    with pytest.raises(SystemExit) as end:
        main(["count", "many"])

    assert end.value.code == 2
    assert "python -m core count: error:" in capsys.readouterr().err


def test_a_core_error_is_printed_and_makes_status_1(install, capsys):
    install("fail-now", "[core.commands]\nrefuse = plug_refuse:command\n", {"plug_refuse": FAILS})

    assert main(["refuse"]) == 1
    assert capsys.readouterr().err == "error: there is no reason; try again\n"


def test_an_unknown_command_names_the_nearest_and_those_that_are_installed(capsys):
    assert main(["tokn"]) == 2

    text = capsys.readouterr().err
    assert "no command named 'tokn'; did you mean 'token'? (installed: config, " in text


def test_a_command_that_cannot_be_imported_fails_alone(install, capsys):
    install("count-up", "[core.commands]\ncount = plug_broken\n", {"plug_broken": "1 / 0"})

    assert main(["count"]) == 1
    assert "command 'count' of count-up 1.0 cannot be imported" in capsys.readouterr().err
    assert main([]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["config", "explain", "token"])
def test_the_commands_of_this_distribution_come_by_entry_point(name):
    command = plugins.available_commands()[name].load()

    assert command.summary
    command.arguments(argparse.ArgumentParser())
