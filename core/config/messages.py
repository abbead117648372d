"""The messages and enums of model_config.proto: ModelConfig, ModelInput, DataType, …

CMake generates their type stubs, `messages.pyi`, from the compiled file (cmake/message_stubs.py).
"""

from core.config import proto

globals().update(proto.module_names("model_config.proto"))
