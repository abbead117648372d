"""gRPC: the v2 inference protocol and the health protocol.

    connection ─► engine ─► method of a service (bytes in, bytes out) ─► core.server

frontend.py          GrpcFrontend: start, stop
options.py           its flags; the command line imports them, and no grpc
engine.py            which engine serves: engine_native.py on libnghttp2, where that was built, or
                     engine_grpcio.py with grpcio_calls.py; no other file knows a transport
                     (transport.py: address, certificates and limits, for both)
native/              the compiled engine: HTTP/2 session in C++, connection in Cython
compression.py       compressed messages of the native engine
table.py             every method with its path, its category and its function
method.py             what a method is; its `enter` checks a call before its message is taken
interceptors.py      access policy, restrictions and access log, in front of methods
protocol/            messages: bytes → InferenceRequest, InferenceResponse → bytes
call.py status.py    the call as a method sees it · kinds of errors as status codes
requests_in_flight.py counts requests, so that a stop can wait for them
"""
