"""Observe and hold a command's system calls from outside, before the kernel carries them out. Linux only, without root.

The package knows processes, files and sockets, and neither sinks nor guarantees.
"""
