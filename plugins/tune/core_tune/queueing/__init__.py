"""A model of queues: predicts from service times which rate a server can hold within an objective."""
