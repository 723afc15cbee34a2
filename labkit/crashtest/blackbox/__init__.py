"""The test of a whole pipeline, of whatever language and engine: killed at its own system calls, judged by its rows.

`settings` holds the user's options, `reading` gets rows, `expectation` says which rows are due, `execution` makes one
start, `runs` one run, `points` chooses where to kill, `outage` builds what a loss of power leaves, `seeing` checks how
much was seen, `campaign` is the whole test. `xray` only watches: the order of durable effects, without a kill. This
package must not ask a pipeline to be written for it.
"""
