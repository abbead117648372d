"""Compiled code: memory layout of forests, prediction, Shapley values."""
