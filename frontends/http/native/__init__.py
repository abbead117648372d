"""Compiled rooms of the HTTP frontend: what every request walks through."""
