"""The messages of health.proto: HealthCheckRequest and HealthCheckResponse.

`health_messages.pyi` beside this file is their generated description for type checkers.
"""

from importlib import resources

from core.config import proto

proto.add(resources.files(__package__).joinpath("health.binpb").read_bytes())
globals().update(proto.module_names("health.proto"))
