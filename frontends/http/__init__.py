"""HTTP/1.1: the KServe v2 protocol with Triton's extensions.

frontend.py                   HttpFrontend: the port of the v2 protocol
options.py                    its flags; the command line imports them, and no aiohttp
listener.py, connections.py   HttpListener, for any port, and its connections; they adapt aiohttp
native/                       the fast path past aiohttp, for common inference requests
route.py, router.py           which service answers a path
interceptors.py               which callers may use it
openapi.py                    /openapi.json, the description of the routes
services/                     what each path does
codec/                        bytes ↔ requests, responses and tensors
message.py, errors.py         a request, its response, and errors as responses
"""
