"""Child processes: how one is started, spoken to, waited for, proven dead, and ended with its parent. It must
not know what they run.
"""

ENDS_WITH_PARENT = "LABKIT_ENDS_WITH_PARENT"
"""The environment variable by which a program that starts `labkit` has it end when that program is gone."""
