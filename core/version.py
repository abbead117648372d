"""The version of core and of everything in this repository."""

__version__ = "0.1.0"
