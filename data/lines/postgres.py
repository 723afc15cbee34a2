"""psycopg: a transaction, autocommit, a pipeline and a COPY. The server's address is the first argument."""

import sys

import psycopg


def insert(connection: psycopg.Connection) -> None:
    with connection.transaction():  # effect: send*SAVEPOINT send*RELEASE send*BEGIN send*COMMIT
        connection.execute("INSERT INTO lines_of_python VALUES (1)")  # effect: send*INSERT


with psycopg.connect(sys.argv[1]) as connection:  # effect: send*Startup send*COMMIT send*Terminate
    connection.execute("CREATE TEMPORARY TABLE lines_of_python (id INT)")  # effect: send*BEGIN send*CREATE
    insert(connection)
    cursor = connection.cursor()
    with cursor.copy("COPY lines_of_python FROM STDIN") as copy:  # effect: send*COPY send*CopyData
        copy.write_row((2,))
with psycopg.connect(sys.argv[1], autocommit=True) as auto:  # effect: send*Startup send*Terminate
    auto.execute("CREATE TEMPORARY TABLE lines_of_python (id INT)")  # effect: send*CREATE
    auto.execute("INSERT INTO lines_of_python VALUES (3)")  # effect: send*INSERT
