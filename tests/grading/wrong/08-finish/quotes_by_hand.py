# misconception: two quotes around a text make a literal
# says: write a quote in the name twice
finish_sql = """
SELECT CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT' ELSE 'ROLLBACK' END || ' PREPARED ''' || gid || ''''
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name
"""
