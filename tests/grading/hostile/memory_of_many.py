# slow: it takes seconds
# attacks: 01-double
# keeps: 01-setting
# Many processes take memory, each within its own limit.
# %%
# exercise 01-double
import os, time
for _ in range(12):
    if os.fork() == 0:
        hoard = bytearray(700 * 1024 * 1024)
        for at in range(0, len(hoard), 4096): hoard[at] = 1
        time.sleep(60); os._exit(0)
time.sleep(60)
