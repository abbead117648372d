"""HTTP/1.1: the KServe v2 protocol with Triton's extensions, on aiohttp and on a fast path past it."""
