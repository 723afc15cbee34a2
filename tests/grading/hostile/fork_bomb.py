# slow: it takes seconds
# attacks: 01-double
# keeps: 01-setting
# Forks without end.
# %%
# exercise 01-double
import os, time
for _ in range(3000):
    try:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
    except OSError:
        break
while True: time.sleep(1)
