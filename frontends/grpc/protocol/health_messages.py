"""The messages of health.proto: HealthCheckRequest and HealthCheckResponse.

CMake generates their type stubs, `health_messages.pyi`, from the compiled file (cmake/message_stubs.py).
"""

from importlib import resources

from core.config import proto

proto.add(resources.files(__package__).joinpath("health.binpb").read_bytes())
globals().update(proto.module_names("health.proto"))
