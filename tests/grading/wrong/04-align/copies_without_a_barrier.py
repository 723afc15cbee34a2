# misconception: a task whose inputs have all ended copies its state
# says: although no barrier has arrived
def align(inputs, came, ended):
    waiting = [each for each in range(inputs) if each not in came]
    return {"read": waiting, "copy": all(each in ended for each in waiting)}
