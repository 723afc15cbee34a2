# attacks: 01-double
# keeps: 01-dedup 01-setting
# Never ends.
# %%
# exercise 01-double
while True: pass
