"""The aiohttp path of a connection. Loop thread only; for compiled code only."""

class AiohttpFallback:
    """Passes bytes to aiohttp's protocol, until it has answered all their requests."""
