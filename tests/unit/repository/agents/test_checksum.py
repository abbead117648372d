"""The agent "checksum": which files a model may have."""

import hashlib

import pytest

from core.errors import CoreError, Kind
from core.repository.agents.checksum import ChecksumAgent

WEIGHTS_MD5 = hashlib.md5(b"weights").hexdigest()
WEIGHTS_SHA256 = hashlib.sha256(b"weights").hexdigest()
LABELS_MD5 = hashlib.md5(b"cat\ndog\n").hexdigest()


def refusal(seen):
    with pytest.raises(CoreError) as error:
        ChecksumAgent().load(seen)
    return error.value


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"MD5:1/model.txt": WEIGHTS_MD5},
        {"md5:1/model.txt": WEIGHTS_MD5.upper()},
        {"SHA256:1/model.txt": WEIGHTS_SHA256, "MD5:labels.txt": LABELS_MD5},
        {"MD5:./1//model.txt": WEIGHTS_MD5},
    ],
)
def test_files_with_the_configured_digests_are_accepted(seen, parameters):
    ChecksumAgent().load(seen(**parameters))


def test_another_file_is_refused_by_name_with_both_digests(seen):
    error = refusal(seen(**{"MD5:1/model.txt": "0" * 32}))

    assert error.kind is Kind.INVALID
    assert error.message == (
        f"Mismatched MD5 hash for file 1/model.txt, expect: {'0' * 32}, got: {WEIGHTS_MD5}"
    )


def test_one_changed_byte_is_another_file(seen, model):
    (model / "1" / "model.txt").write_text("Weights")

    message = refusal(seen(**{"SHA256:1/model.txt": WEIGHTS_SHA256})).message

    assert message.startswith("Mismatched SHA-256 hash for file 1/model.txt, expect: ")


@pytest.mark.parametrize("file", ["1/other", "1", ""])
def test_a_file_that_is_not_there_is_refused_by_name(seen, file):
    message = refusal(seen(**{f"MD5:{file}": "0" * 32})).message

    assert file in message


def test_a_key_without_algorithm_is_refused(seen):
    assert refusal(seen(**{"1/model.txt": "0"})).message.startswith(
        "failed to parse key: 1/model.txt"
    )


def test_an_algorithm_that_is_not_known_is_refused_by_name(seen):
    error = refusal(seen(**{"CRC32:1/model.txt": "0"}))

    assert error.kind is Kind.UNSUPPORTED
    assert error.message.startswith("Unsupported checksum algorithm: CRC32")


@pytest.mark.parametrize("path", ["../other/model.txt", "/etc/hostname", "1/../../x", "."])
def test_a_file_outside_the_model_is_not_read(seen, path):
    message = refusal(seen(**{f"MD5:{path}": "0" * 32})).message

    assert "must lie in the model's folder" in message


def test_every_file_must_be_listed_when_that_is_required(seen):
    parameters = {"MD5:1/model.txt": WEIGHTS_MD5, "require_all": "true"}

    message = refusal(seen(**parameters)).message

    assert message.startswith("file labels.txt has no checksum in the configuration")
    ChecksumAgent().load(seen(**parameters, **{"MD5:labels.txt": LABELS_MD5}))


def test_configurations_need_no_checksum_of_their_own(seen, model):
    (model / "configs").mkdir()
    (model / "configs" / "small.pbtxt").write_text("")
    parameters = {"MD5:1/model.txt": WEIGHTS_MD5, "MD5:labels.txt": LABELS_MD5}

    ChecksumAgent().load(seen(**parameters, require_all="true"))


def test_a_requirement_that_is_neither_true_nor_false_is_refused(seen):
    assert "it must be true or false" in refusal(seen(require_all="yes")).message
