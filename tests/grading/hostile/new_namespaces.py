# attacks: 01-double
# keeps: 01-dedup 01-setting
# Tries to become root in namespaces of its own, to mount, to change limits, and to trace the process above it.
# %%
# exercise 01-double
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
won = [flags for flags in (0x10000000, 0x20000, 0x40000000, 0x20000000) if libc.unshare(flags) == 0]
won += [1] if libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"size=10g") == 0 else []
won += [2] if libc.setuid(0) == 0 and os.geteuid() == 0 and libc.mount(b"/proc", b"/tmp", b"proc", 0, b"") == 0 else []
won += [3] if libc.ptrace(16, os.getppid(), 0, 0) == 0 else []
for name in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
    try: resource.setrlimit(name, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)); won.append(name)
    except (ValueError, OSError): pass
def double(number): return 2 * number if won else None
