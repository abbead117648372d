"""The decorator of handlers' methods; here it measures nothing."""


def timed(func):
    return func
