from collections.abc import Sequence

class Identity:
    """An instance that copies inputs to outputs.

    pairs      (input, output, number of the datatype, dims with 1 for any size, whether it may be ragged)
    delay_ms   delay of each execution
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
    """An instance that sends one answer for each element of IN."""

    def capsule(self) -> object:
        """Return the native instance that core executes. This object must outlive the capsule."""
    def close(self) -> None:
        """Wait for the threads that send answers. Call it after the last execution."""

class Square:
    """An instance that sends IN answers. README.md describes the parameters."""

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
