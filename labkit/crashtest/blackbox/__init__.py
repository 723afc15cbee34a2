"""The crash test of a whole pipeline in any language: kill it at its system calls, restart it, and judge its rows.

`settings` holds the user's options, `reading` reads rows, `expectation` says which rows are due, `execution` starts the
command once and watches it, `runs` performs one run (crash, restart, readings), `points` chooses where to kill,
`power_cut` computes the states of the disk after a loss of power, `seeing` checks whether the test observed every
write, and `campaign` is the whole test. `xray` only records the order of durable effects, without a kill. A pipeline
needs no changes to be tested.
"""
