"""Child processes: start one, exchange events with it, wait for it, prove that it is dead, and end it with its parent.

The package does not know what the processes run.
"""

ENDS_WITH_PARENT = "LABKIT_ENDS_WITH_PARENT"
"""The environment variable with which a program that starts `labkit` makes labkit end together with that program."""
