"""Compiled code: the detections of one row."""
