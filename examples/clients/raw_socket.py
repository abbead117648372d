"""One digit, byte by byte over a socket: python raw_socket.py [HOST:PORT]

What `curl --data-binary` sends with the binary tensor extension: a body of JSON followed by the bytes of
the tensor, `Inference-Header-Content-Length` saying where the JSON ends, and `Expect: 100-continue`,
after which the body waits until the server says that it wants it.
"""

import json
import socket
import struct
import sys

# Digit 1501 of scikit-learn's data, one that the model was not trained with.
PIXELS = [
    [0, 0, 2, 13, 16, 14, 1, 0],
    [0, 0, 11, 12, 7, 16, 3, 0],
    [0, 0, 9, 3, 2, 16, 3, 0],
    [0, 0, 0, 0, 9, 11, 0, 0],
    [0, 0, 2, 11, 15, 13, 3, 0],
    [0, 0, 4, 15, 16, 13, 3, 0],
    [0, 0, 0, 14, 8, 0, 0, 0],
    [0, 0, 5, 15, 4, 0, 0, 0],
]
TRUTH = 7


def main(address="localhost:8000"):
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        stream = connection.makefile("rb")
        head, body = request_bytes(address)

        connection.sendall(head)
        interim = stream.readline()
        assert interim == b"HTTP/1.1 100 Continue\r\n", interim
        assert stream.readline() == b"\r\n"

        connection.sendall(body)
        status, headers = read_head(stream)
        answer = json.loads(stream.read(int(headers["content-length"])))

    assert status == "HTTP/1.1 200 OK", (status, answer)
    (output,) = answer["outputs"]
    served = max(range(10), key=lambda i: output["data"][i])
    print(f"digit {TRUTH}: served {served}, probability {output['data'][served]:.3f}")


def request_bytes(address):
    """The head and the body of the request."""
    header = json.dumps(
        {
            "inputs": [
                {
                    "name": "pixels",
                    "shape": [1, 8, 8],
                    "datatype": "FP32",
                    "parameters": {"binary_data_size": 256},
                }
            ],
            "outputs": [{"name": "probabilities", "parameters": {"binary_data": False}}],
        }
    ).encode()
    tensor = struct.pack("<64f", *(value for row in PIXELS for value in row))
    body = header + tensor
    head = (
        "POST /v2/models/digits/infer HTTP/1.1\r\n"
        f"Host: {address}\r\n"
        "User-Agent: curl/7.71.1\r\n"
        "Accept: */*\r\n"
        f"Inference-Header-Content-Length: {len(header)}\r\n"
        "Content-Type: application/octet-stream\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Expect: 100-continue\r\n"
        "\r\n"
    )
    return head.encode(), body


def read_head(stream):
    """The status line and the headers of a response, names in lower case."""
    status = stream.readline().decode().rstrip("\r\n")
    headers = {}
    while line := stream.readline().decode().rstrip("\r\n"):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return status, headers


if __name__ == "__main__":
    main(*sys.argv[1:])
