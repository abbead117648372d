"""Load generators: compiled code for plain connections, coroutines for the rest."""
