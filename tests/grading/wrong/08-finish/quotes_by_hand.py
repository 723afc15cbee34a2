# misconception: two quotes around a text make a literal
# says: finish_sql returns "ROLLBACK PREPARED 'o'clock/4/0'"
finish_sql = """
SELECT CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT' ELSE 'ROLLBACK' END || ' PREPARED ''' || gid || ''''
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name
"""
