"""SavedModels of many makers give the outputs of TensorFlow's own functions, without a configuration."""

import numpy as np
import pytest
from backend_tensorflow.framework import tf
from saved_models import MAKERS


def expected(folder, request):
    """Return the outputs by name, from the function of TensorFlow 2. Components have names of their own."""
    function = tf.saved_model.load(str(folder), tags=list(request.tags)).signatures[request.key]
    structure = function.structured_input_signature[1]
    inputs = {}
    for name, array in request.inputs.items():
        if name in structure:
            found = tf.constant(array, structure[name].dtype)
            inputs[name] = tf.reshape(found, ()) if structure[name].shape.rank == 0 else found
    if missing := structure.keys() - inputs.keys():
        raise AssertionError(f"the function has other inputs: {sorted(missing)}")
    outputs = {}
    for name, value in function(**inputs).items():
        if isinstance(value, tf.SparseTensor):
            for part in ("indices", "values", "dense_shape"):
                outputs[f"{name}_{part}"] = getattr(value, part).numpy()
            continue
        parts = tf.nest.flatten(value, expand_composites=True)
        for i, each in enumerate(parts):
            outputs[f"{name}_{i}" if i else name] = each.numpy()
    return outputs


def sent(array, batches):
    """Return an array as clients send it: a batch has rows with dims."""
    return array.reshape(-1, 1) if batches and array.ndim == 1 else array


def test_there_are_thirty():
    assert len(MAKERS) >= 30


@pytest.mark.parametrize("name", MAKERS)
def test_outputs_are_those_of_tensorflow(serve, tmp_path, name):
    made = tmp_path / "made"
    request = MAKERS[name](made)
    key = f'parameters {{ key: "TF_SIGNATURE_DEF" value {{ string_value: "{request.key}" }} }}'
    model = serve(
        lambda folder: made.rename(folder / "model.savedmodel"),
        f'backend: "tensorflow" {"" if request.key == "serving_default" else key} {request.more}',
    )
    wanted = expected(tmp_path / "models" / "m" / "1" / "model.savedmodel", request)

    batches = bool(model.config.max_batch_size)
    answer = model(**{name: sent(array, batches) for name, array in request.inputs.items()})

    assert sorted(answer) == sorted(wanted)
    for output, array in wanted.items():
        found = answer[output]
        assert found.shape == (array.shape if array.ndim > batches else (*array.shape, 1)), output
        assert found.dtype == array.dtype
        if array.dtype == object:
            assert found.reshape(-1).tolist() == array.reshape(-1).tolist()
        else:
            np.testing.assert_allclose(found.reshape(array.shape), array, rtol=1e-5, atol=1e-6)
