"""HTTP/1.1 between clients and servers: heads are parsed, bodies pass as they are."""
