"""The messages of grpc_service.proto: ModelInferRequest, ModelInferResponse, …

CMake generates their type stubs, `messages.pyi`, from the compiled file (cmake/message_stubs.py).
"""

from importlib import resources

from core.config import proto

for _name in ("grpc_control.binpb", "grpc_service.binpb"):
    proto.add(resources.files(__package__).joinpath(_name).read_bytes())
globals().update(proto.module_names("grpc_service.proto"))
