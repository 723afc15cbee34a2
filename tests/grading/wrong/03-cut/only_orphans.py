# misconception: it is enough that everything received was sent
# says: Transfer 12.1 is sent in the copy of process 1, not received in the copy of process 2, and in no channel
def consistent(parts):
    sent = {number for part in parts for number in part["sent"]}
    return all(number in sent for part in parts for number in part["received"])
