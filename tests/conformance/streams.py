"""A gRPC stream with its answers in a queue."""

import queue
import time


class Stream:
    """One gRPC stream, with its answers in a queue."""

    def __init__(self, server, **kwargs):
        self.client = server.grpc_client()
        self.answers = queue.Queue()
        kwargs.setdefault("stream_timeout", 60)
        self.client.start_stream(
            callback=lambda result, error: self.answers.put((result, error)), **kwargs
        )

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.client.stop_stream(cancel_requests=kind is not None)

    def send(self, model, inputs, **kwargs):
        self.client.async_stream_infer(model, inputs, **kwargs)

    def next(self, timeout=20):
        return self.answers.get(timeout=timeout)

    def take(self, count):
        taken = [self.next() for _ in range(count)]
        assert all(error is None for _, error in taken), taken
        return [result for result, _ in taken]

    def quiet(self, seconds=0.3):
        time.sleep(seconds)
        return self.answers.empty()
