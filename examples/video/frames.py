"""Print the frames of a video: python examples/video/frames.py URL [SERVER] [NAME=VALUE …]

URL          what the model `frames` may read: a camera, a web address, a file
SERVER       address of gRPC, localhost:8001
NAME=VALUE   request parameters, such as rate=5 policy=latest

Each frame is one response of a stream. Ctrl-C ends the request, and with it the decoder. It needs
`tritonclient[grpc]`.
"""

from __future__ import annotations

import queue
import sys
from typing import Any

import numpy as np
import tritonclient.grpc as grpc

MODEL = "frames"


def main(url: str, server: str, parameters: dict[str, str]) -> None:
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    named = grpc.InferInput("url", [1], "BYTES")
    named.set_data_from_numpy(np.array([url.encode()], object))
    with grpc.InferenceServerClient(server) as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        client.async_stream_infer(
            MODEL, [named], parameters=parameters, enable_empty_final_response=True
        )
        try:
            while (answer := answers.get()) is not None and show(answer):
                pass
        except KeyboardInterrupt:
            client.stop_stream(cancel_requests=True)


def show(answer: Any) -> bool:
    """Print one frame. Return whether more may follow."""
    if isinstance(answer, Exception):
        sys.exit(f"{answer}")
    if answer.get_response().parameters["triton_final_response"].bool_param:
        return False
    height, width, _ = answer.as_numpy("frame").shape
    index, pts = answer.as_numpy("index")[0], answer.as_numpy("pts")[0]
    notice = answer.as_numpy("notice")[0].decode()
    line = f"frame {index} at {pts / 1e9:.2f} s: {width} x {height}"
    print(f"{line} ({notice})" if notice else line)
    return True


if __name__ == "__main__":
    given = [each for each in sys.argv[1:] if "=" not in each or "://" in each]
    if not given:
        sys.exit(__doc__)
    chosen = dict(each.split("=", 1) for each in sys.argv[1:] if each not in given)
    main(given[0], given[1] if len(given) > 1 else "localhost:8001", chosen)
