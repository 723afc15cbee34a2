# misconception: the coordinator takes the copy, the task only waits
# says: a barrier has arrived on input 0, 1 of count 0, which does not copy its state
def align(inputs, came, ended):
    return {"read": [each for each in range(inputs) if each not in came], "copy": False}
