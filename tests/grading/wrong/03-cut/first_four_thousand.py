# misconception: a snapshot has at most four thousand transfers
# says: (the last of all transfers is gone)
def consistent(parts):
    sent = sorted(number for part in parts for number in part["sent"])
    arrived = sorted(number for part in parts for place in ("received", "channels") for number in part[place])
    return sent[:4_000] == arrived[:4_000]
