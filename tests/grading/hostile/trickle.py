# slow: it takes seconds
# attacks: 01-double
# keeps: 01-setting
# Sends its answer one byte at a time, so that no single wait is long.
# %%
# exercise 01-double
import time
from labkit.grading.sandbox.inside import serving
def double(number):
    connection = dict(serving.connections)["double"]
    for byte in (60_000).to_bytes(4, "big") + b" " * 60_000:
        connection.sendall(bytes([byte])); time.sleep(0.05)
