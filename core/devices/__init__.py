"""Arrays in the memory of devices."""
