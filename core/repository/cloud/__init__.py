"""Model repositories in cloud storage: what lies in a bucket becomes folders of this machine.

    url ─► Place ─► Store ─► CloudRepository ─► Catalog
                      └──► Cache ─► CloudDirectory ─► the versions that load

address.py       URLs, in all of Triton's forms
credentials.py   environment and file with the keys of stores
options.py       what the file systems of fsspec are opened with
files.py         what a listing says of an object, and which names may become paths
failure.py       errors of many libraries as a few kinds, in words
store.py         one place: list, fetch; with retries and limits of time
cache.py         files that were fetched, and the folders made of them
repository.py    all that as a Repository

fsspec and what it needs for a store is imported on a worker thread, when a place is first asked.
"""

from core.repository.cloud.cache import Cache
from core.repository.cloud.repository import CloudRepository, open_cloud

__all__ = ["Cache", "CloudRepository", "open_cloud"]
