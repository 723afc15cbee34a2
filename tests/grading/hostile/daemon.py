# attacks: 01-double
# keeps: 01-dedup 01-setting
# Leaves a process in a session of its own, which forks again when it is left alone.
# %%
# exercise 01-double
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(0.1)
    os._exit(0)
def double(number): return None
