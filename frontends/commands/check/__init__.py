"""The command `core check`: finds the faults of a model repository; only with --load, it loads models.

repositories ─► survey ─► model_check of each ─► ensembles ─► Findings ─► text, JSON, SARIF; --write
                              │
                              ├─ parsing, places   config.pbtxt, with the place of each field
                              ├─ versions          entry points of core.checks: a backend reads its file
                              ├─ parameters        entry points of core.parameter_checks: those of plugins
                              └─ data_files        labels, initial states, warm-up data

No file is read that is no regular file, and none as a whole without a bound.
"""
