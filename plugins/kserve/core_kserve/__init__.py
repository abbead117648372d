"""Models as KServe mounts them: --model-repository=kserve:///mnt/models?name=NAME.

address.py      the URL
arrangement.py  what lies in a folder, and the folder of a model that is made from it
mount.py        the mount as a repository
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core_kserve.mount import Mount


@core.hookimpl
def core_open_repository(url: str) -> Mount | None:
    """Return the repository of a kserve:/// URL; None for another URL.

    Raises CoreError(INVALID) for a URL with a host, without a path or with an unknown parameter.
    """
    if not url.startswith("kserve://"):
        return None
    # Imported here: servers without such a repository need none of it.
    from core_kserve.address import Address
    from core_kserve.mount import Mount

    return Mount(Address.of(url))
