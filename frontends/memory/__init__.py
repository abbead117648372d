"""The memory frontend: takes descriptors of memory over a Unix domain socket."""
