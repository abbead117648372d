"""Compare this server with others, in one run on one machine. README.md describes the use."""
