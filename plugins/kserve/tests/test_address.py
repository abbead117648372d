"""kserve:/// URLs: what they say, and which are refused."""

from pathlib import Path

import pytest
from core_kserve import core_open_repository
from core_kserve.address import Address

from core.errors import CoreError


def test_a_url_names_the_mount_and_its_model():
    url = "kserve:///mnt/models?name=iris&trust=true"

    assert Address.of(url) == Address(url, Path("/mnt/models"), "iris", trust=True)


def test_name_and_trust_may_be_left_out():
    assert Address.of("kserve:///mnt/models") == Address(
        "kserve:///mnt/models", Path("/mnt/models")
    )


def test_a_path_may_hold_escaped_characters():
    assert Address.of("kserve:///mnt/my%20models?name=a.b-c").folder == Path("/mnt/my models")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("kserve://mnt/models", "found 'mnt' in place of an absolute path"),
        ("kserve://", "found '' in place of an absolute path"),
        ("kserve:///m?nam=iris", "found the parameter 'nam', known are name and trust"),
        ("kserve:///m?name=", "found the name '', which cannot be that of a folder"),
        ("kserve:///m?name=..", "found the name '..'"),
        ("kserve:///m?name=a/b", "found the name 'a/b'"),
        ("kserve:///m?trust=yes", "found trust=yes, which must be true or false"),
    ],
)
def test_a_wrong_url_is_refused_with_the_wrong_part(url, text):
    with pytest.raises(CoreError) as caught:
        core_open_repository(url)

    assert text in caught.value.message
    assert "expected kserve:///mnt/models?name=NAME" in caught.value.message


def test_other_urls_are_left_to_other_plugins():
    assert core_open_repository("s3://bucket/models") is None
