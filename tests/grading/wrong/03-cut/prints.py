# misconception: to show the answer is to give it
# says: []}]) returned None; return True or False
def consistent(parts):
    sent = [number for part in parts for number in part["sent"]]
    received = [number for part in parts for number in part["received"] + part["channels"]]
    print(sorted(sent) == sorted(received))
