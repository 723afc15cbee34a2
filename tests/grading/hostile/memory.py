# attacks: 01-double
# keeps: 01-dedup 01-setting
# Takes all memory.
# %%
# exercise 01-double
hoard = []
while True:
    hoard.append(bytearray(64 * 1024 * 1024))
