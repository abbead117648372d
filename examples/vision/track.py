"""Send a video of moving shapes to the ensemble `track_shapes`: python examples/vision/track.py [SERVER]

Each frame is a request of one sequence. It prints which track each shape has, and writes the last frame, with
boxes and ids, to tracked.jpg. It needs `tritonclient[http]` and opencv-python-headless.
"""

import sys
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import tritonclient.http as http
from shapes import KINDS, overlaps, video

FRAMES = 60

server = sys.argv[1] if len(sys.argv) > 1 else "localhost:8000"
tracks: dict[int, Counter[int]] = {}
with http.InferenceServerClient(server) as client:
    for number, (picture, boxes, kinds, objects) in enumerate(video(seed=4, frames=FRAMES)):
        names = [KINDS[kind] for kind in kinds]
        image = http.InferInput("image", [1, 1], "BYTES")
        file = cv2.imencode(".jpg", picture)[1].tobytes()
        image.set_data_from_numpy(np.array([[file]], object))
        answer = client.infer(
            "track_shapes",
            [image],
            sequence_id=1,
            sequence_start=number == 0,
            sequence_end=number == FRAMES - 1,
        )
        ids, found = answer.as_numpy("ids")[0], answer.as_numpy("boxes")[0]
        for each, box in zip(objects, boxes, strict=True):
            if len(found) and (overlap := overlaps(box, found)).max() > 0.4:
                tracks.setdefault(int(each), Counter())[int(ids[overlap.argmax()])] += 1
Path("tracked.jpg").write_bytes(answer.as_numpy("picture")[0, 0])
for each, counted in sorted(tracks.items()):
    track, frames = counted.most_common(1)[0]
    print(f"{names[each]} {each}: track {track} in {frames} of {FRAMES} frames")
