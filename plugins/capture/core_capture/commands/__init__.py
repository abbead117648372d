"""The commands core capture and core replay."""
