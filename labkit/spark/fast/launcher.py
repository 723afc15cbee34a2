"""The program that Spark starts as its Python: for a module with slow imports it lets a zygote process fork.

A zygote (`labkit.spark.fast.zygote`) has imported such modules already. Other modules run in a plain interpreter. The
launcher must start in milliseconds, so Spark runs it by path, isolated and without site-packages, and it imports
nothing of the lab. It ends when the forked process ends, because Spark watches the launcher.
"""

import json
import os
import socket
import sys


def main() -> None:
    """Run, in a child of the zygote, the Python module that Spark wants to start; return when the child has ended.

    The zygote is a process that has imported slow modules and forks children, which need not import them again. If no
    zygote answers, or if it does not support the module, this process runs the module in a new Python (exec).
    """
    python, words = os.environ["LABKIT_PYTHON"], sys.argv[1:]
    if words[:1] == ["-m"] and words[1] in os.environ["LABKIT_FORKED"].split():
        folder = os.getcwd()  # noqa: PTH109 - pathlib takes time to import
        request = json.dumps([words[1:], dict(os.environ), folder]).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(os.environ["LABKIT_ZYGOTE"])
                # The child gets Spark's own streams, so its output does not pass through this process.
                socket.send_fds(connection, [b"."], [0, 1, 2])
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                os.execv(python, [python, "-P", *words])  # noqa: S606 - no shell is wanted
            # Nobody sends anything: this call returns when the forked child ends.
            connection.recv(1)
            return
    os.execv(python, [python, "-P", *words])  # noqa: S606 - no shell is wanted


main()
