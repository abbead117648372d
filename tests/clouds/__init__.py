"""Clouds on loopback, for tests of several folders."""
