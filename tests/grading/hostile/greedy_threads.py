# slow: it takes seconds
# attacks: 01-double
# keeps: 01-setting
# Threads that never end hold the interpreter.
# %%
# exercise 01-double
import threading
def spin():
    while True: pass
for _ in range(500):
    try: threading.Thread(target=spin, daemon=True).start()
    except RuntimeError: break
def double(number): return None
