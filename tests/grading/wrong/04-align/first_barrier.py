# misconception: the first barrier is the moment of the snapshot, as with markers
# says: On the way align(2, [1], []) answered {'read':
def align(inputs, came, ended):
    return {"read": [each for each in range(inputs) if each not in came], "copy": bool(came)}
