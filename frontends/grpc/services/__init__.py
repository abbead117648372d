"""The methods of the protocol, one file for each area: bytes in, bytes out, no transport."""
