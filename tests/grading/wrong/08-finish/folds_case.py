# misconception: a name is the same in small and capital letters
# says: still prepared:  counts/4/0, counts /4/0; committed: Counts/3/0
finish_sql = """
SELECT CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT' ELSE 'ROLLBACK' END || ' PREPARED ' || quote_literal(gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND lower(split_part(gid, '/', 1)) = lower(name)
"""
