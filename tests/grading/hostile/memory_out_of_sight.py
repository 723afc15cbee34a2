# attacks: 01-double
# keeps: 01-dedup 01-setting
# Takes memory that belongs to no process, which no limit of a process counts.
# %%
# exercise 01-double
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
won = []
try: won.append(os.memfd_create("hoard"))
except OSError: pass
segment = libc.shmget(0, 64 << 20, 0o1600)
if segment >= 0: won.append(segment)
def double(number): return 2 * number if won else None
