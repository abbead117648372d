"""Models of other backends in processes of their own."""
