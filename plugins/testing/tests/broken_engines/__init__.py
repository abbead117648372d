"""Engines with one mistake each, which the contract of engines must find."""
