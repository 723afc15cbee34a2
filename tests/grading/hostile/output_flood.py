# slow: it takes seconds
# attacks: 01-double
# keeps: 01-dedup 01-setting
# Prints without end.
# %%
# exercise 01-double
while True: print("x" * 100_000)
