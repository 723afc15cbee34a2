"""Access to this machine: crash-safe files, Java and jars, processes, system calls and servers, and `labkit doctor`.

The package does not know what a store, a sink or a job is.
"""
