# misconception: blanks at the end of a name mean nothing
# says: still prepared: Counts/3/0; committed
finish_sql = """
SELECT CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT' ELSE 'ROLLBACK' END || ' PREPARED ' || quote_literal(gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND trim(split_part(gid, '/', 1)) = trim(name)
"""
