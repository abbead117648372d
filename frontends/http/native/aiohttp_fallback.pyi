"""The aiohttp path of a connection. Loop thread only; for compiled code only."""

class AiohttpFallback:
    """Passes bytes of a connection to aiohttp's protocol, for requests that the fast path does not serve."""
