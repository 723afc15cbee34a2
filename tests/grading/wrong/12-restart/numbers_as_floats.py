# misconception: a number is exact as a floating-point number
# says: ) answered 4611686018427387904; spark continues with 46116860184273879
def next_step(engine, left):
    folder = "offsets/" if engine == "spark" else "ha/"
    names = [name.removeprefix(folder) for name in left if name.startswith(folder)]
    numbers = [int(float(name)) for name in names if name.isdigit()]
    if engine == "flink":
        return max(numbers, default=0) + 1
    return max(numbers) + (f"commits/{max(numbers)}" in left) if numbers else 0
