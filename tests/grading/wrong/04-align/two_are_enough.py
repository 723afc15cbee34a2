# misconception: a task has two inputs
# says: "read" may contain only the inputs 0 to 0
def align(inputs, came, ended):
    waiting = [each for each in (0, 1) if each not in came and each not in ended]
    return {"read": [each for each in (0, 1) if each not in came], "copy": bool(came) and not waiting}
