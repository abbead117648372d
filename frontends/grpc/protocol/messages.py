"""The messages of grpc_service.proto: ModelInferRequest, ModelInferResponse, …

CMake generates their type stubs, `messages.pyi`, from the compiled file (cmake/message_stubs.py).
"""

from importlib import resources

from core.config import proto

proto.add(resources.files(__package__).joinpath("grpc_service.binpb").read_bytes())
globals().update(proto.module_names("grpc_service.proto"))
