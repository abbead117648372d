"""llama.cpp's own HTTP server, in the package xllamacpp, on one thread.

Run it with: python -m benchmarks.servers.apps.llama_server MODEL.gguf PORT SLOTS
"""

from __future__ import annotations

import sys
import threading

import xllamacpp

CONTEXT = 512  # tokens of each slot
BATCH = 512  # llama.cpp's own is 2048, of which it computes 512 at once


def main() -> None:
    path, port, slots = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.hostnames, parameters.port = ["127.0.0.1"], port
    parameters.verbosity, parameters.warmup, parameters.ui = 1, False, False
    parameters.n_parallel, parameters.n_ctx = slots, CONTEXT * slots
    parameters.n_batch = parameters.n_ubatch = BATCH
    parameters.cache_ram_mib = 256
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    threading.Event().wait()
    del server  # it runs as long as it is held


if __name__ == "__main__":
    main()
