# misconception: only letters and digits tell calls apart
# says: answered 'orders/0/1/charge_now'
import re


def key_of_call(row):
    safe = re.sub(r"\W", "_", row["call"])
    return f"{row['topic']}/{row['partition']}/{row['offset']}/{safe}"
