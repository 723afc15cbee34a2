"""Observes a command's system calls, and holds each before the kernel carries it out. Linux only, without root.

The package knows processes, files and sockets, and neither sinks nor guarantees.
"""
