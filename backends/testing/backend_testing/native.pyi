from collections.abc import Sequence

class Identity:
    """A native instance that copies inputs to outputs, and counts their bytes in a metric.

    model, version   labels of the metric
    pairs      (input, output, number of the datatype, dims with 1 for any size, whether it may be ragged)
    delay_ms   delay of each execution; it ends early if all requests are cancelled
    """

    def __init__(
        self,
        model: str,
        version: str,
        pairs: Sequence[tuple[str, str, int, Sequence[int], bool]],
        delay_ms: int,
    ) -> None: ...
    def capsule(self) -> object:
        """Return the native instance that core executes. This object must outlive the capsule."""
    def close(self) -> None:
        """Release the metric. Call it after the last execution."""

class Repeat:
    """A native instance that sends one answer for each element of IN, DELAY ms after the previous one."""

    def capsule(self) -> object:
        """Return the native instance that core executes. This object must outlive the capsule."""
    def close(self) -> None:
        """Wait for the threads that send answers. Call it after the last execution."""

class Square:
    """A native instance that sends IN answers, each with the value IN.

    infer_delay_ns, output_delay_ns   delays before each answer; the second only if it is sent
    cancel_delay_ns                   delay after a cancellation
    empty_count    number of last answers that are omitted
    fail_count     number of answers before those that are errors
    """

    def __init__(
        self,
        infer_delay_ns: int,
        output_delay_ns: int,
        cancel_delay_ns: int,
        fail_count: int,
        empty_count: int,
    ) -> None: ...
    def capsule(self) -> object:
        """Return the native instance that core executes. This object must outlive the capsule."""
    def close(self) -> None:
        """Wait for the threads that send answers. Call it after the last execution."""
