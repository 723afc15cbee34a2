"""Appends a part, then counts it in SysV shared memory, which outlives every process and which no file shows."""

import ctypes
from pathlib import Path

KEY = 0x6C6B7431
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
identifier = libc.shmget(KEY, 4, 0o1600)  # IPC_CREAT
done = ctypes.c_int.from_address(libc.shmat(identifier, None, 0))
for number, part in enumerate(sorted(Path("input").iterdir()), start=1):
    if number > done.value:
        with Path("store/all.txt").open("a") as out:
            out.write(part.read_text())
        done.value = number
