"""A whole pipeline under test, of whatever language and engine: killed at its own system calls, judged by its rows.

`settings` is what a person says, `reading` how rows come in, `expectation` which rows are due, `execution` one run,
`points` where it is killed, `outage` what a loss of power leaves, `seeing` how much of it was seen, `campaign` the whole
test. `xray` only looks: the order of durable effects, without a kill.
"""
