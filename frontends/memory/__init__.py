"""The memory frontend: takes descriptors of memory over a Unix domain socket."""

from frontends.memory.frontend import MemoryFrontend

__all__ = ["MemoryFrontend"]
