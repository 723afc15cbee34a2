# attacks: 01-double 01-dedup 01-setting
# Writes into the connection itself: no JSON, a length without end, deep JSON, and NaN.
# %%
import os, socket, time
from labkit.grading.sandbox.inside import serving
def into(name, payload):
    for other, connection in serving.connections:
        if other == name:
            connection.sendall(payload)
deep = b'{"plain":' + b"[" * 30_000 + b"]" * 30_000 + b"}"
# %%
# exercise 01-double
def double(number):
    into("double", (0xFFFFFFFF).to_bytes(4, "big") + b"x" * 1000); time.sleep(1); return 2 * number
# %%
# exercise 01-dedup
def seen(table, record):
    into("seen", len(deep).to_bytes(4, "big") + deep); return record in table
# %%
# exercise 01-setting
into("setting", (14).to_bytes(4, "big") + b'{"plain": NaN}')
setting = {"interval": 5}
