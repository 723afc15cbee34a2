# misconception: random weights tell transfers apart, so their sums may be compared
# says: (numbers with the same random weight)
import random

drawn = random.Random(1)
weights = [drawn.getrandbits(20) for _ in range(100_000)]


def consistent(parts):
    balance = 0
    for part in parts:
        balance += sum(weights[number] for number in part["sent"])
        balance -= sum(weights[number] for number in part["received"] + part["channels"])
    return balance == 0
