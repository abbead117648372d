"""Responses → files in the output folder, and where a run goes on."""
