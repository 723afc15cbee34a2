"""What the lab needs from outside Python: found, started, asked for its state, stopped, never left behind.

A service looks at ports, files and processes. It must not know what a sink or a job is.
"""
