"""Count the instructions of one request with valgrind; load on the machine does not affect the counts."""
