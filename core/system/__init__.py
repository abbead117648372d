"""What the server needs of the machine: memory, cores, the service manager."""
