"""Options that only save time. Everything works without them, and no verdict depends on them.

`LABKIT_FAST` (`labkit.host.fast_start`) switches zygote and archive off; `--standby` requests a standby, which
includes the warm start. Savings in seconds:

    zygote    SIGKILL to committed 29, without 50
    archive   start to verdict 49, without 77; on a quiet machine start to first commit 6.0, without 10.2
    both      SIGKILL to committed 29, with neither 69; start to verdict 49 and 152
    standby   SIGKILL to committed 4.1 and not 29; on a quiet machine 1.0 and not 5.6 to 6.3
    warm      of a standby on a quiet machine: 1.0, without its scratch query 4.1

`make bench ONLY=crash` measures the first four lines: here one round on two cores under heavy foreign load, so
compare the ratios. The figures of a quiet machine with two cores come from the prototypes.
"""
