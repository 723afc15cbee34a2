"""The test of a whole pipeline in any language: kill it at its system calls, restart it, and judge the rows it left.

`settings` holds the user's options, `reading` reads rows, `expectation` says which rows are due, `execution`
performs one start, `runs` one run, `points` chooses where to kill, `outage` builds what a loss of power leaves,
`seeing` checks whether the test saw every write, and `campaign` is the whole test. `xray` only records the
order of durable effects, without a kill. A pipeline needs no changes to be tested.
"""
