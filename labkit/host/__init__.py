"""Access to this machine: crash-safe files, Java and jars, processes and servers, and a check of what is missing.

The package does not know what a store, a sink or a job is.
"""
