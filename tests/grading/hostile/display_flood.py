# slow: it takes seconds
# attacks: 01-double
# keeps: 01-dedup 01-setting
# Displays and updates without end, and clears what it has shown.
# %%
# exercise 01-double
from IPython.display import clear_output, display
shown = display("x", display_id=True)
while True:
    shown.update("y" * 100_000); clear_output()
