"""The routes of captures on the HTTP port: what was captured, and replays to this server."""
