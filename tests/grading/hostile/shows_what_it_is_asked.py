# attacks: 01-double
# keeps: 01-dedup 01-setting
# %%
import threading
import time
from pathlib import Path

from IPython.display import display

handle = display("nothing yet", display_id="asked")


def tell():
    while True:
        if Path("/tmp/asked").exists():
            text = Path("/tmp/asked").read_text()
            handle.update(f"asked {text}")
            globals()["why"] = f"I was asked {text} leak"
        time.sleep(0.01)


threading.Thread(target=tell, daemon=True).start()

# %%
# exercise 01-double
def double(number):
    import time
    from pathlib import Path

    with Path("/tmp/asked").open("a") as file:
        file.write(f"{number} ")
    time.sleep(0.05)
    return number

# %%
# exercise 01-why
why = "Because the table is durable."
