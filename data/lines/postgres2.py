"""psycopg 2: a transaction at the end of a with block, and autocommit. The server's address is the first argument."""

import sys

import psycopg2

connection = psycopg2.connect(sys.argv[1])  # effect: send*Startup
with connection, connection.cursor() as cursor:  # effect: send*COMMIT
    cursor.execute("CREATE TEMPORARY TABLE lines_of_python (id INT)")  # effect: send*BEGIN* send*CREATE*
    cursor.execute("INSERT INTO lines_of_python VALUES (1)")  # effect: send*INSERT*
connection.autocommit = True
with connection.cursor() as cursor:
    cursor.execute("DELETE FROM lines_of_python")  # effect: send*DELETE*
connection.close()  # effect: send*Terminate
