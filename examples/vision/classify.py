"""Send a photograph to the ensemble `classify`: python examples/vision/classify.py [FILE] [SERVER]

Without a file, it sends a photograph of scikit-learn: a temple in China. It needs `tritonclient[http]`.
"""

import sys
from pathlib import Path

import numpy as np
import tritonclient.http as http


def photograph() -> Path:
    import sklearn.datasets

    return Path(sklearn.datasets.__file__).parent / "images" / "china.jpg"


file = Path(sys.argv[1]) if len(sys.argv) > 1 else photograph()
server = sys.argv[2] if len(sys.argv) > 2 else "localhost:8000"
image = http.InferInput("image", [1, 1], "BYTES")
image.set_data_from_numpy(np.array([[file.read_bytes()]], object))
with http.InferenceServerClient(server) as client:
    answer = client.infer("classify", [image])
for label, score in zip(answer.as_numpy("labels")[0], answer.as_numpy("scores")[0], strict=True):
    print(f"{score:.2f} {label.decode()}")
