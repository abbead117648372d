"""Settings in a model's configuration: in JSON for a server, and in the text of config.pbtxt."""
