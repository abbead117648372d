"""Version of the agreement with native backends; include/core_abi.h has the same for C."""

VERSION = 1
