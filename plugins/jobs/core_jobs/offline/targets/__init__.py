"""Where the requests of a run go: a server in this process, or one at a URL."""
