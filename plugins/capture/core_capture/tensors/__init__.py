"""Tensors in the messages of the v2 protocol."""
