"""Compiled code that frontends share."""
