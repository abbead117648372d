"""The command line of core tune."""
