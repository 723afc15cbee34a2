# misconception: older transfers were compared in the snapshots before
# says: (the first of all transfers is gone)
def consistent(parts):
    sent = sorted(number for part in parts for number in part["sent"])
    arrived = sorted(number for part in parts for place in ("received", "channels") for number in part[place])
    return sent[-4_000:] == arrived[-4_000:]
