"""A part of the server declares its flags in a section, and core needs no name of them."""

from dataclasses import dataclass

import pytest

from core.errors import CoreError, invalid
from core.options import (
    Flags,
    Listener,
    Options,
    Section,
    UsageError,
    check_server,
    group,
    idle_flags,
    parse,
    reads_again,
    usage,
)
from core.options.values import NAMES, PORT, STRING

_mail = group("Mail")


@dataclass(kw_only=True)
class MailOptions(Section):
    mail_port: int = _mail(PORT, 25, "Port of mail.")
    mail_from: list[str] = _mail(NAMES, [], "Sender that is accepted.")
    mail_file: str = _mail(STRING, "", "File with addresses.")
    mail_pool: str = _mail(STRING, "", "Pool.", idle="there is no pool")

    def resolve(self, options):
        self.mail_file = self.mail_file or f"{options.id}.txt"

    @classmethod
    def from_environment(cls):
        return {"mail_port": 26, "id": "of-the-environment"}

    @classmethod
    def complete(cls, given):
        if given.get("mail_from") == ["all"]:
            given.setdefault("log_info", False)
            return ["mail: log_info is off"]
        return []

    def check(self, options):
        if self.mail_port == 1:
            raise invalid("no mail at port 1")

    def check_usage(self, options):
        if self.mail_port == 2:
            raise UsageError("no mail at port 2")

    def listeners(self, options):
        return [Listener("mail", "mail", "0.0.0.0", self.mail_port)]

    @property
    def reads_again(self):
        return self.mail_file == "again"


@dataclass(kw_only=True)
class NewsOptions(Section):
    news_port: int = group("News")(PORT, 119, "Port of news.")

    def listeners(self, options):
        return [Listener("news", "news", "0.0.0.0", self.news_port)]


def flags(*sections):
    found = Flags()
    for section in sections or (MailOptions,):
        found.add_section(section)
    return found


def test_a_section_reads_its_values_from_the_command_line():
    options = parse(["--mail-port=7", "--mail-from=b", "--mail-from=a", "--id=x"], flags())

    mail = MailOptions.of(options)
    assert (mail.mail_port, mail.mail_from, mail.mail_file) == (7, ["a", "b"], "x.txt")
    assert MailOptions.of(options) is mail
    assert options.value("mail_port") == 7
    assert options.value("log_info") is True
    assert options.value("unknown", 3) == 3


def test_options_without_a_command_line_have_its_defaults():
    assert MailOptions.of(Options.defaults()).mail_port == 25
    assert MailOptions.of(Options.defaults(mail_port=1)).mail_port == 1
    options = Options.defaults(MailOptions(mail_port=1), id="x")
    assert (MailOptions.of(options).mail_port, options.id) == (1, "x")
    assert [each.name for each in options.listeners()] == ["mail"]
    MailOptions.of(Options.defaults()).mail_from.append("x")
    assert MailOptions.of(Options.defaults()).mail_from == []


def test_changed_options_are_others():
    options = parse(["--mail-port=7"], flags())
    assert MailOptions.of(options).mail_port == 7

    other = options.changed(mail_port=8, id="y")

    assert (MailOptions.of(other).mail_port, other.id) == (8, "y")
    assert (MailOptions.of(options).mail_port, options.id) == (7, "of-the-environment")


def test_flags_go_before_the_environment_which_a_program_does_not_read():
    assert MailOptions.of(parse([], flags())).mail_port == 26
    assert MailOptions.of(parse(["--mail-port=7"], flags())).mail_port == 7
    assert MailOptions.of(flags().options({})).mail_port == 25


def test_a_section_changes_other_defaults_and_says_so():
    options = parse(["--mail-from=all"], flags())

    assert not options.log_info
    assert options.notes == ("mail: log_info is off",)
    assert parse(["--mail-from=all", "--log-info=true"], flags()).log_info


def test_its_checks_are_asked():
    with pytest.raises(UsageError, match="no mail at port 2"):
        parse(["--mail-port=2"], flags())
    options = parse(["--mail-port=1", "--model-repository=/m"], flags())
    with pytest.raises(CoreError, match="no mail at port 1"):
        check_server(options)


def test_two_parts_cannot_listen_on_one_port():
    with pytest.raises(UsageError, match=r"mail requests and news requests .* 0\.0\.0\.0:119"):
        parse(["--mail-port=119"], flags(MailOptions, NewsOptions))


def test_a_section_says_whether_files_are_read_again():
    assert reads_again(parse(["--mail-file=again"], flags()))
    assert not reads_again(parse([], flags()))


def test_its_flags_without_effect_are_named():
    assert [flag.name for flag in idle_flags(parse(["--mail-pool=x"], flags()))] == ["mail-pool"]


def test_help_has_its_group_and_plugins_come_last():
    found = flags()
    found.add("quota", 0, "Requests.")
    found.add_section(NewsOptions)

    text = usage(found)

    assert text.index("Mail:") < text.index("News:") < text.index("Plugins:")
    assert "Port of mail. Default: 25." in text


def test_a_name_belongs_to_one_part():
    found = flags()
    with pytest.raises(CoreError, match="flag --mail-port is there already"):
        found.add_section(MailOptions)
    with pytest.raises(CoreError, match="flag --mail-file is there already"):
        found.add("mail-file", "", "Another.")
    found.add("mail-pool", "", "Takes the place of a flag without effect.")
    assert [flag.group for flag in found.rows if flag.name == "mail-pool"] == ["Plugins"]
