"""The inputs and outputs that the rooms of a request work with."""

from pathlib import Path

import pytest

from core import dtypes
from core.config import InputSpec, OutputSpec, Signature, parse_text, signature_of
from core.errors import CoreError, Kind


def test_a_signature_matches_the_configuration():
    config = parse_text(
        """
        name: "m" max_batch_size: 4
        input [ { name: "a" data_type: TYPE_FP32 dims: [ -1, 3 ] },
                { name: "b" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } optional: true },
                { name: "c" data_type: TYPE_INT64 dims: [ -1 ] allow_ragged_batch: true
                  is_shape_tensor: true } ]
        output [ { name: "z" data_type: TYPE_BF16 dims: [ 4 ] reshape { shape: [ 2, 2 ] } } ]
        model_transaction_policy { decoupled: true }
        """,
        "test",
    )

    assert signature_of(config, Path(), 3) == Signature(
        name="m",
        version=3,
        inputs={
            "a": InputSpec("a", dtypes.FP32, (-1, 3)),
            "b": InputSpec("b", dtypes.BYTES, (1,), reshape=(), optional=True),
            "c": InputSpec("c", dtypes.INT64, (-1,), ragged=True, shape_tensor=True),
        },
        outputs={"z": OutputSpec("z", dtypes.BF16, (4,), reshape=(2, 2))},
        max_batch_size=4,
        decoupled=True,
    )


def test_inputs_and_outputs_keep_the_order_of_the_configuration():
    config = parse_text(
        " ".join(f'input {{ name: "{name}" data_type: TYPE_BOOL dims: 1 }}' for name in "cab"),
        "test",
    )

    assert list(signature_of(config, Path()).inputs) == ["c", "a", "b"]


def test_a_datatype_that_is_none_is_refused():
    config = parse_text('input { name: "a" data_type: 77 dims: 1 }', "test")

    with pytest.raises(CoreError, match="'a' has data_type 77, which is none"):
        signature_of(config, Path())


def labelled(filename):
    return parse_text(
        f'name: "m" output {{ name: "z" data_type: TYPE_FP32 dims: 1 label_filename: "{filename}" }}',
        "test",
    )


@pytest.mark.parametrize("text", ["cat\ndog\n\nbird\n", "cat\ndog\n\nbird"])
def test_each_line_of_the_label_file_is_a_label(tmp_path, text):
    (tmp_path / "labels.txt").write_text(text)

    assert signature_of(labelled("labels.txt"), tmp_path).outputs["z"].labels == (
        "cat",
        "dog",
        "",
        "bird",
    )


def test_without_a_label_file_there_are_no_labels():
    assert signature_of(labelled(""), Path()).outputs["z"].labels is None


def test_a_label_file_outside_of_the_model_is_refused(tmp_path):
    (tmp_path / "secret").write_text("s")
    model = tmp_path / "m"
    model.mkdir()
    (model / "link.txt").symlink_to(tmp_path / "secret")

    for filename in ("../secret", str(tmp_path / "secret"), "link.txt"):
        with pytest.raises(CoreError) as caught:
            signature_of(labelled(filename), model)

        assert caught.value.kind is Kind.UNSUPPORTED
        assert caught.value.message.endswith(
            "for output 'z' in model 'm' is outside model directory"
        )


def test_a_label_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "latin").write_bytes(b"\xe9t\xe9")

    for filename, why in (
        ("absent.txt", "No such file"),
        (".", "Is a directory"),
        ("latin", "utf-8"),
    ):
        with pytest.raises(CoreError, match="failed to open text file for read") as caught:
            signature_of(labelled(filename), tmp_path)

        assert caught.value.kind is Kind.INTERNAL
        assert why in caught.value.message
        assert caught.value.message.endswith("the label file for output 'z' in model 'm'")
