"""Observes a command's system calls, and holds each before the kernel carries it out. Linux only; needs no root rights.

The package handles processes, files and sockets, and does not know what a sink or a guarantee is.
"""
