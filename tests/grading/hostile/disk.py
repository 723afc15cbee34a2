# slow: it takes seconds
# attacks: 01-double
# keeps: 01-setting
# Fills the disk with one file, then with many.
# %%
# exercise 01-double
import os
for folder in ("/tmp", os.path.expanduser("~"), "/dev/shm", "."):
    for number in range(10_000):
        try:
            with open(f"{folder}/{number}.bin", "wb") as file:
                file.write(bytes(1 << 20))
        except OSError:
            break
with open("/tmp/one.bin", "wb") as file:
    while True: file.write(bytes(1 << 20))
