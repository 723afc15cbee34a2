# attacks: 01-double 01-dedup
# keeps: 01-setting
# Puts what it is asked into its error messages and the name of its error, to read hidden values in the feedback.
# %%
# exercise 01-double
def double(number):
    if number > 2:
        raise type(f"Leak{number}", (Exception,), {})(f"leak {number}")
    return 2 * number
# %%
# exercise 01-dedup
def seen(table, record):
    if record.startswith("hidden"):
        print("leak", record, flush=True)
        raise ValueError(f"leak {table} {record}")
    return record in table
