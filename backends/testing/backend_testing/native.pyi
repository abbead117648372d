from collections.abc import Sequence

class Identity:
    """Copies inputs to outputs.

    pairs      (input, output, number of the datatype, dims with 1 for any size, whether it may be ragged)
    delay_ms   of each execution
    """

    def __init__(
        self,
        model: str,
        version: str,
        pairs: Sequence[tuple[str, str, int, Sequence[int], bool]],
        delay_ms: int,
    ) -> None: ...
    def capsule(self) -> object:
        """What core executes; the object must outlive it."""
    def close(self) -> None:
        """Give the metric back. After the last execution."""

class Repeat:
    """Answers once for each element of IN."""

    def capsule(self) -> object:
        """What core executes; the object must outlive it."""
    def close(self) -> None:
        """Wait for the threads that still answer. After the last execution."""

class Square:
    """Answers as often as IN says; see parameters in README.md."""

    def __init__(
        self,
        infer_delay_ns: int,
        output_delay_ns: int,
        cancel_delay_ns: int,
        fail_count: int,
        empty_count: int,
    ) -> None: ...
    def capsule(self) -> object:
        """What core executes; the object must outlive it."""
    def close(self) -> None:
        """Wait for the threads that still answer. After the last execution."""
