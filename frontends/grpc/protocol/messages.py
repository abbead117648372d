"""The messages of grpc_service.proto: ModelInferRequest, ModelInferResponse, …

`messages.pyi` beside this file is their generated description for type checkers.
"""

from importlib import resources

from core.config import proto

proto.add(resources.files(__package__).joinpath("grpc_service.binpb").read_bytes())
globals().update(proto.module_names("grpc_service.proto"))
