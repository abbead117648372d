"""Compiled code: filters, overlaps, assignment, and the three trackers."""
