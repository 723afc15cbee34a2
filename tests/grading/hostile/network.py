# attacks: 01-double
# keeps: 01-dedup 01-setting
# Asks somebody else for the answer.
# %%
import socket
def reached():
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 22)), (socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("169.254.169.254", 80)),
        (socket.AF_INET6, ("::1", 22)), (socket.AF_UNIX, "/var/run/docker.sock"), (socket.AF_UNIX, "\0labkit"),
    ):
        try:
            with socket.socket(family) as connection:
                connection.settimeout(0.3); connection.connect(address); return True
        except OSError:
            pass
    return False
online = reached()
# %%
# exercise 01-double
def double(number): return 2 * number if online else None
