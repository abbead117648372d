"""Requests of each protocol, as bytes."""
