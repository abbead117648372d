"""Triton's home of DLDeviceType."""

from tritonserver._api._enums import DLDeviceType

__all__ = ["DLDeviceType"]
