# attacks: 01-double
# keeps: 01-dedup 01-setting
# Its cell ends the process without an error.
# %%
# exercise 01-double
import os
def double(number): return 2 * number
os._exit(0)
