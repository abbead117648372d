"""Encrypted files: decryption and refusals."""

import base64
import io

import pytest
from core_encryption import format as encryption
from core_encryption.format import MAGIC, decrypt, encrypt, keys_of, new_key
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CoreError

KEY, OTHER = (base64.urlsafe_b64decode(new_key()) for _ in range(2))
SIZE = 64  # of a chunk here: files of several chunks are quick to make


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(encryption, "_CHUNK_BYTES", SIZE)


def encrypted(content, key=KEY):
    made = io.BytesIO()
    encrypt(io.BytesIO(content), made, key)
    return made.getvalue()


def decrypted(content, *keys):
    made = io.BytesIO()
    decrypt(io.BytesIO(content), made, keys or (KEY,))
    return made.getvalue()


def refusal(content, *keys):
    with pytest.raises(CoreError) as error:
        decrypted(content, *keys)
    return error.value.message


@pytest.mark.parametrize("size", [0, 1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE, 5 * SIZE + 7])
def test_a_file_of_any_size_comes_back(size):
    content = bytes(i % 251 for i in range(size))

    made = encrypted(content)

    assert decrypted(made) == content
    assert size < 8 or content not in made


def test_the_same_file_is_encrypted_otherwise_each_time():
    assert encrypted(b"x" * 200)[len(MAGIC) :] != encrypted(b"x" * 200)[len(MAGIC) :]


def test_a_wrong_key_is_distinguished_from_a_changed_file():
    assert refusal(encrypted(b"weights"), OTHER) == "it was encrypted with another key"


def test_one_of_several_keys_is_enough():
    assert decrypted(encrypted(b"weights"), OTHER, KEY) == b"weights"


def test_an_unencrypted_file_is_refused():
    for content in (b"", b"weights", MAGIC, MAGIC + b"x" * 35):
        assert refusal(content) == "it is no file that core encrypt has made"


@given(st.data())
def test_no_byte_can_be_changed(data):
    made = bytearray(encrypted(b"w" * (2 * SIZE + 5)))
    place = data.draw(st.integers(0, len(made) - 1))
    made[place] ^= data.draw(st.integers(1, 255))

    refusal(bytes(made))


@given(st.integers(0, 2 * SIZE))
def test_no_end_can_be_cut_off(count):
    made = encrypted(b"w" * (2 * SIZE))

    refusal(made[: len(made) - 1 - count])


def test_chunks_cannot_be_left_out_swapped_or_added():
    made = encrypted(bytes(range(SIZE)) * 4)
    head, size = len(MAGIC) + 36, SIZE + 16
    start, chunks = made[:head], [made[i : i + size] for i in range(head, len(made), size)]

    first, second, third, last = chunks
    for order in ([first, third, last], [second, first, third, last], [*chunks, last], chunks[:-1]):
        assert refusal(start + b"".join(order)).startswith("it was changed after")


def test_a_header_cannot_ask_for_gigabytes():
    made = bytearray(encrypted(b"weights"))
    made[len(MAGIC) + 32 : len(MAGIC) + 36] = b"\xff" * 4

    assert refusal(bytes(made)).startswith("it was changed after")


# keys -------------------------------------------------------------------------------------------------


def told(*place):
    with pytest.raises(CoreError) as error:
        keys_of(*place)
    return error.value.message


def test_keys_are_read_from_the_environment_or_a_file(tmp_path, monkeypatch):
    one, two = new_key(), new_key()
    monkeypatch.setenv("NAME", one)
    (tmp_path / "keys").write_text(f"{two}\n{one}\n")

    assert keys_of("NAME", None) == [base64.urlsafe_b64decode(one)]
    assert keys_of(None, str(tmp_path / "keys")) == [
        base64.urlsafe_b64decode(k) for k in (two, one)
    ]


def test_a_missing_key_is_an_error_with_its_place(tmp_path, monkeypatch):
    monkeypatch.delenv("NAME", raising=False)

    assert told("NAME", None).startswith("there is no key in environment variable 'NAME'")
    assert told(None, str(tmp_path / "no")).endswith(
        "no' cannot be read: No such file or directory"
    )


@pytest.mark.parametrize("content", ["secret", "0" * 43, "%" * 44, "c2hvcnQ="])
def test_an_invalid_key_is_not_shown(monkeypatch, content):
    monkeypatch.setenv("NAME", content)

    message = told("NAME", None)

    assert message.startswith("environment variable 'NAME' holds no key: a key is 32 bytes")
    assert content not in message
