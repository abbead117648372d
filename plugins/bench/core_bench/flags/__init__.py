"""The command line: flags of core bench and those of perf_analyzer."""
