"""The messages and enums of model_config.proto: ModelConfig, ModelInput, DataType, …

`messages.pyi` beside this file is their generated description for type checkers.
"""

from core.config import proto

globals().update(proto.module_names("model_config.proto"))
