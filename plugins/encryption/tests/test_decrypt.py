"""The agent "decrypt", and core encrypt, which makes models for it."""

import errno
import os
import stat
from pathlib import Path

import pytest
from core_encryption import decrypt
from core_encryption.decrypt import DecryptAgent
from core_encryption.encrypt import encrypt_model
from core_encryption.format import new_key

from core import __main__ as command
from core.config import parse_text
from core.errors import CoreError, Kind
from core.repository import private


@pytest.fixture
def encrypted(model, tmp_path, key):
    """The folder of an encrypted copy of the model m."""
    target = tmp_path / "encrypted" / "m"
    encrypt_model(model, target)
    return target


@pytest.fixture
def treated(encrypted, seen):
    """A function (**parameters) that calls the agent for the copy, and returns the model as it left it."""

    def treated(**parameters):
        found = seen(**parameters)
        found.update(encrypted)
        DecryptAgent().load(found)
        return found

    return treated


def refusal(treated, **parameters):
    with pytest.raises(CoreError) as error:
        treated(**parameters)
    return error.value


def contents(folder):
    return {
        each.relative_to(folder).as_posix(): each.read_text(errors="replace")
        for each in folder.rglob("*")
        if each.is_file() and each.name != "config.pbtxt"
    }


def test_a_model_comes_back_as_it_was(treated, model, encrypted):
    assert set(contents(encrypted)) == {"1/model.txt.encrypted", "labels.txt.encrypted"}

    found = treated()

    assert contents(found.location) == contents(model)


def test_nothing_readable_is_left_in_the_copy(encrypted):
    assert not any("weights" in text or "cat" in text for text in contents(encrypted).values())


def test_only_this_user_may_enter_the_decrypted_folder_and_it_goes_with_the_model(treated):
    found = treated()

    for folder in (found.location, found.location.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    found.remove()
    assert not found.location.parent.exists()


@pytest.mark.skipif(not private._MEMORY.is_dir(), reason="no folder in memory here")
def test_decrypted_files_are_in_memory(treated):
    assert treated().location.is_relative_to(private._MEMORY)


def test_without_free_memory_decrypted_files_are_on_disk_and_a_warning_is_logged(
    treated, monkeypatch, tmp_path, caplog
):
    monkeypatch.setattr(private, "_MEMORY", tmp_path / "none")

    found = treated()

    assert (found.location / "1" / "model.txt").read_text() == "weights"
    assert "which may be a disk" in caplog.text


def test_memory_that_others_have_filled_meanwhile_is_no_failure(
    treated, monkeypatch, tmp_path, caplog
):
    """Several models have seen the same free memory."""
    (tmp_path / "memory").mkdir()
    monkeypatch.setattr(private, "_MEMORY", tmp_path / "memory")
    real = decrypt.decrypt

    def full(source, target, keys):
        if Path(target.name).is_relative_to(tmp_path / "memory"):
            target.write(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target, keys)

    monkeypatch.setattr(decrypt, "decrypt", full)
    found = treated()

    assert (found.location / "1" / "model.txt").read_text() == "weights"
    assert list((tmp_path / "memory").iterdir()) == []
    assert "memory has become full" in caplog.text


def test_the_folder_of_a_version_stays_if_it_is_empty(folder, tmp_path, key, seen):
    """As that of an ensemble."""
    model = folder.model("n")
    (model / "2").mkdir()
    encrypt_model(model, tmp_path / "copy")
    found = seen()
    found.update(tmp_path / "copy")

    DecryptAgent().load(found)

    assert (found.location / "2").is_dir()


def test_another_key_is_refused_with_the_reason(treated, monkeypatch):
    monkeypatch.setenv("CORE_MODEL_KEY", new_key())

    error = refusal(treated)

    assert error.kind is Kind.INVALID
    assert error.message == (
        "file 1/model.txt.encrypted cannot be decrypted: it was encrypted with another key"
    )


def test_a_file_that_was_changed_is_refused_by_name(treated, encrypted):
    file = encrypted / "labels.txt.encrypted"
    file.write_bytes(file.read_bytes()[:-1])

    assert refusal(treated).message.startswith(
        "file labels.txt.encrypted cannot be decrypted: it was changed"
    )


def test_the_parameters_name_the_place_of_the_key(treated, key, monkeypatch, tmp_path):
    monkeypatch.delenv("CORE_MODEL_KEY")
    monkeypatch.setenv("MODEL_KEY", key)
    (tmp_path / "key").write_text(key)

    treated(key_env="MODEL_KEY")
    treated(key_file=str(tmp_path / "key"))
    assert "both 'key_env' and 'key_file'" in refusal(treated, key_env="A", key_file="b").message


def test_a_key_in_the_configuration_is_refused_and_not_shown(treated, key):
    message = refusal(treated, key=key).message

    assert message.startswith("unknown parameter 'key': a key never stands in a configuration")
    assert key not in message


def test_files_that_are_not_encrypted_are_taken_along_unless_that_is_forbidden(treated, encrypted):
    (encrypted / "1" / "note.txt").write_text("plain")

    assert contents(treated().location)["1/note.txt"] == "plain"
    message = refusal(treated, require_all="true").message
    assert message == "file 1/note.txt is not encrypted, and 'require_all' is true"


def test_a_file_cannot_be_there_twice(treated, encrypted):
    (encrypted / "labels.txt").write_text("cow")

    assert refusal(treated).message == "there are both labels.txt.encrypted and labels.txt"


def test_links_that_lead_in_a_circle_are_followed_once(treated, encrypted):
    (encrypted / "1" / "again").symlink_to(encrypted)

    assert (treated().location / "1" / "model.txt").read_text() == "weights"


# core encrypt ------------------------------------------------------------------------------


def agents(folder, name="config.pbtxt"):
    found = parse_text((folder / name).read_text(), name).model_repository_agents.agents
    return [(each.name, dict(each.parameters)) for each in found]


def test_a_key_is_made_in_a_file_that_only_this_user_may_read(tmp_path, capsys):
    file = tmp_path / "key"

    assert command.main(["encrypt", "--new-key", str(file)]) == 0

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() not in capsys.readouterr().out
    assert command.main(["encrypt", "--new-key", str(file)]) == 1
    assert "cannot be made: File exists" in capsys.readouterr().err


def test_the_copy_names_the_agent_and_the_place_of_the_key(model, tmp_path, capsys):
    (model / "configs").mkdir()
    (model / "configs" / "small.pbtxt").write_text('backend: "test"')
    command.main(["encrypt", "--new-key", str(tmp_path / "key")])

    done = command.main(
        ["encrypt", str(model), str(tmp_path / "copy"), "--key-file", str(tmp_path / "key")]
    )

    assert done == 0
    expected = [("decrypt", {"key_file": str(tmp_path / "key")})]
    assert agents(tmp_path / "copy") == agents(tmp_path / "copy", "configs/small.pbtxt") == expected
    assert "encrypted 2 of the files of" in capsys.readouterr().out


def test_a_model_without_configuration_gets_one_that_names_the_agent(folder, tmp_path, key):
    encrypt_model(folder.model("n", config=None), tmp_path / "copy")

    assert agents(tmp_path / "copy") == [("decrypt", {})]


@pytest.mark.parametrize("target", ["copy", "models/m/copy"])
def test_a_target_that_is_there_or_inside_the_model_is_refused(model, tmp_path, key, target):
    (tmp_path / "copy").mkdir()

    with pytest.raises(CoreError, match=r"is there already|lies in"):
        encrypt_model(model, tmp_path / target)


def test_a_copy_that_fails_leaves_nothing(folder, tmp_path, key):
    config = 'model_repository_agents { agents [ { name: "checksum" } ] }'
    model = folder.model("n", config=config)

    with pytest.raises(CoreError, match="names the agent 'checksum' and not"):
        encrypt_model(model, tmp_path / "copy")

    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("arguments", [[], ["m"]])
def test_half_of_the_arguments_is_a_mistake(arguments, capsys):
    assert command.main(["encrypt", *arguments]) == 2
    assert "give MODEL_DIR and COPY_DIR" in capsys.readouterr().err
