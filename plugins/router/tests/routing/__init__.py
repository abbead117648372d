"""What the tests of the router share: clients, servers, and routers on a thread."""
