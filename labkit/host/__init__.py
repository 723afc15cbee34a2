"""This machine: files that survive a crash, Java and jars, processes and servers, and a look at what is missing.

It must not know what a store, a sink or a job is.
"""
