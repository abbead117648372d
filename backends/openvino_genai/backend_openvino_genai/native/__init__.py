"""Compiled code: calls of OpenVINO GenAI without the GIL."""
