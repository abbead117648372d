"""What a server says about itself and its models."""
