"""A command's system calls, seen and held from outside while they are asked for. Linux only, and no root.

It knows processes, files and sockets. It must not know sinks, points, readers or guarantees.
"""
