def wall_ms() -> int:
    """Milliseconds since the epoch, up to some milliseconds old: as of the kernel's last tick."""
