"""core-bench: the command `core bench`, which sends load to a model and measures it.

command line ─► [flags] ─► Side, Level, Timing
                             │
         [model] ─► ModelInfo ─► [data] ─► samples ─► [wire] ─► requests ─► [load] ─► Tally of a round
                                                                              │
                                    [measure]: rounds ─► CaseResult ─► [report]: table, CSV, JSON, page
"""
