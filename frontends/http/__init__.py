"""HTTP/1.1: the KServe v2 protocol with Triton's extensions.

frontend.py                   the port of the protocol
endpoint.py, connections.py   any port: the engine, aiohttp, and nothing of it anywhere else
native/                       the fast path past it, for common requests for inference
router.py, restricted.py      which service answers a path, and who may ask
services/                     what each path does
platforms/                    the ports of SageMaker and Vertex AI
codec/                        bytes ↔ requests, responses and tensors
message.py, errors.py         a call, its answer, and errors as answers
"""

from frontends.http.frontend import HttpFrontend

__all__ = ["HttpFrontend"]
