"""The server whose model is tuned: a running one, or one of its own."""
