"""Faster starts of a Spark driver. Everything works without them, and no verdict depends on them.

`LABKIT_FAST` (`labkit.host.fast_start`) switches off the zygote, a process from which Spark's Python processes are
forked, and the archive of Java classes. `--standby` starts a second driver before the crash, which runs a small query
to warm up. Seconds, measured on two cores (busy: one round under heavy load, so compare only ratios):

                                                      with     without
    zygote     busy    SIGKILL to the next commit       29          50
    archive    busy    start to verdict                 49          77
               quiet   start to first commit           6.0        10.2
    both       busy    SIGKILL to the next commit       29          69
               busy    start to verdict                 49         152
    standby    busy    SIGKILL to the next commit      4.1          29
               quiet   SIGKILL to the next commit      1.0  5.6 to 6.3
    warm       quiet   the same with a standby         1.0         4.1

`make bench ONLY=crash` measures the first four; the figures of a quiet machine come from prototypes.
"""
