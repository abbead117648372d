"""This server beside others, in one run on one machine. README.md says how it is used."""
