# misconception: a name with a dot in front is a file like any other
# says: 'commits/.0.tmp']) answered 1; spark continues with 0
def next_step(engine, left):
    if engine == "spark":

        def numbers(folder):
            return {int("".join(filter(str.isdigit, each))) for each in left if each.startswith(folder)}

        planned = numbers("offsets")
        if not planned:
            return 0
        return max(planned) + (max(planned) in numbers("commits"))
    done = [int(each[3:]) for each in left if each.startswith("ha/")]
    return max(done, default=0) + 1
