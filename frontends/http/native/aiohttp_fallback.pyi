"""The aiohttp path of a connection. Loop thread only; for compiled code only."""

class AiohttpFallback:
    """Passes the bytes of a connection to aiohttp's protocol, until it has answered all requests in them."""
