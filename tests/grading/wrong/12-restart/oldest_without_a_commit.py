# misconception: the oldest plan without a commit runs next
# says: ) answered 0; spark continues with 2.
def next_step(engine, left):
    folder = "offsets/" if engine == "spark" else "ha/"
    names = [name.removeprefix(folder) for name in left if name.startswith(folder)]
    numbers = [int(name) for name in names if name.isdigit()]
    if engine == "flink":
        return max(numbers, default=0) + 1
    rest = [number for number in numbers if f"commits/{number}" not in left]
    return min(rest) if rest else max(numbers, default=-1) + 1
