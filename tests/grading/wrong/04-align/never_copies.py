# misconception: the coordinator takes the copy, the task only waits
# says: count 0 has had a barrier by input 0, 1, does not copy its state
def align(inputs, came, ended):
    return {"read": [each for each in range(inputs) if each not in came], "copy": False}
