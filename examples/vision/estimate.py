"""Send a picture of a person to `estimate_pose`: python examples/vision/estimate.py FILE [SERVER]

It prints the points that the network is sure of, and writes the picture with a skeleton to pose.jpg. It needs
`tritonclient[http]`.
"""

import sys
from pathlib import Path

import numpy as np
import tritonclient.http as http

NAMES = {0: "nose", 2: "left eye", 5: "right eye", 11: "left shoulder", 12: "right shoulder"}
NAMES |= {13: "left elbow", 14: "right elbow", 15: "left wrist", 16: "right wrist"}
NAMES |= {23: "left hip", 24: "right hip", 25: "left knee", 26: "right knee"}
NAMES |= {27: "left ankle", 28: "right ankle"}

if len(sys.argv) < 2:
    raise SystemExit(__doc__)
server = sys.argv[2] if len(sys.argv) > 2 else "localhost:8000"
image = http.InferInput("image", [1, 1], "BYTES")
image.set_data_from_numpy(np.array([[Path(sys.argv[1]).read_bytes()]], object))
with http.InferenceServerClient(server) as client:
    answer = client.infer("estimate_pose", [image])
for number, (x, y, score) in enumerate(answer.as_numpy("keypoints")[0]):
    if number in NAMES and score >= 0.5:
        print(f"{NAMES[number]}: {x:.0f}, {y:.0f}, score {score:.2f}")
Path("pose.jpg").write_bytes(answer.as_numpy("picture")[0, 0])
