"""The file of tokens, and the command that makes its lines."""

import hashlib
import stat

import pytest

from core.__main__ import main
from core.errors import CoreError, Kind
from frontends.shared.access.limits import Limits
from frontends.shared.access.tokens import digest_of, line_of, new_token, read_tokens, token_file

HASH = "sha256:" + hashlib.sha256(b"secret").hexdigest()


def test_a_line_gives_a_caller_and_its_roles():
    found = read_tokens(f"alice infer,read {HASH}\n", "tokens")

    holder = found[digest_of("secret")]
    assert (holder.name, holder.roles, holder.limits) == ("alice", {"infer", "read"}, None)


def test_a_line_may_have_limits():
    found = read_tokens(f"a infer {HASH} rate=1.5 burst=20 concurrent=8", "tokens")

    assert found[digest_of("secret")].limits == Limits(1.5, 20, 8)


def test_comments_and_empty_lines_are_ignored():
    assert read_tokens("# all of them\n\n   \n", "tokens") == {}
    assert len(read_tokens(f"a infer {HASH}  # until May\n", "tokens")) == 1


@pytest.mark.parametrize(
    "line,reason",
    [
        ("alice infer", "tokens:2: expected <name> <role>[,<role>] sha256:<64 hex digits>"),
        ("alice infer secret", "tokens:2: the third word must be sha256: and 64 hex digits"),
        (f"alice infer {HASH.upper()}", "tokens:2: the third word must be sha256:"),
        (
            f"alice admin {HASH}",
            "tokens:2: there is no role 'admin'; roles are infer, read, manage",
        ),
        (f"alice infer, {HASH}", "tokens:2: there is no role ''"),
        (f"al!ce infer {HASH}", "tokens:2: a name has letters, digits and"),
        (f"alice infer {HASH} rate=-1", "tokens:2: rate= takes a number of at least 0"),
        (f"alice infer {HASH} concurrent=1.5", "tokens:2: concurrent= takes a number"),
        (f"alice infer {HASH} rate=nan", "tokens:2: rate= takes a number"),
        (
            f"alice infer {HASH} quota=1",
            "tokens:2: limits are rate=, burst=, concurrent= and tokens=",
        ),
        (
            f"alice infer {HASH} rate=1 rate=2",
            "tokens:2: limits are rate=, burst=, concurrent= and tokens=",
        ),
        (f"alice infer {HASH}\nbob infer {HASH}", "tokens:3: this token stands in a line above"),
    ],
)
def test_a_wrong_line_is_named_and_its_secret_is_not(line, reason):
    with pytest.raises(CoreError) as caught:
        read_tokens(f"# tokens\n{line}", "tokens")

    assert caught.value.kind is Kind.INVALID
    assert caught.value.message.startswith(reason)
    assert "secret" not in caught.value.message
    assert HASH[7:] not in caught.value.message.lower()


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(CoreError, match=r"--auth-tokens '.*none' cannot be read: No such file"):
        token_file(str(tmp_path / "none"))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(CoreError, match="it is no text"):
        token_file(str(tmp_path / "bytes"))


def test_tokens_are_long_random_and_easy_to_find():
    tokens = {new_token() for _ in range(100)}

    assert len(tokens) == 100
    assert all(token.startswith("core_") and len(token) == 48 for token in tokens)


def test_the_server_reads_the_output_of_the_command(tmp_path, capsys):
    path = tmp_path / "tokens"
    assert main(["token", "alice", "--role", "infer", "--role", "read", "--file", str(path)]) == 0
    first = capsys.readouterr()
    more = ["--rate", "2000000", "--burst", "0.5", "--concurrent", "3"]
    assert main(["token", "bob", "--role", "manage", "--file", str(path), *more]) == 0
    second = capsys.readouterr()

    found = token_file(str(path))

    assert found[digest_of(first.out.strip())].roles == {"infer", "read"}
    assert found[digest_of(second.out.strip())].limits == Limits(2_000_000, 0.5, 3)
    assert first.out.strip() not in path.read_text() + first.err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_file_the_line_is_shown_beside_the_token(capsys):
    assert main(["token", "alice", "--role", "infer"]) == 0

    shown = capsys.readouterr()
    assert digest_of(shown.out.strip()) in read_tokens(shown.err.split("\n", 1)[1], "shown")


@pytest.mark.parametrize("arguments", [["al ice", "--role", "infer"], ["a", "--role", "admin"]])
def test_a_token_without_a_caller_is_refused(arguments, capsys, tmp_path):
    assert main(["token", *arguments, "--file", str(tmp_path / "tokens")]) == 1

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: a new token:1: ")
    assert not (tmp_path / "tokens").exists()


def test_a_line_is_added_after_an_unfinished_one(tmp_path):
    (tmp_path / "tokens").write_text(line_of("a", ["infer"], "one"))

    main(["token", "b", "--role", "infer", "--file", str(tmp_path / "tokens")])

    assert len(token_file(str(tmp_path / "tokens"))) == 2
