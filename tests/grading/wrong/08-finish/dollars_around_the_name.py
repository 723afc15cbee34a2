# misconception: no name holds the signs that stand around it
# says: PREPARED $$a.b 1
finish_sql = """
SELECT CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT PREPARED ' ELSE 'ROLLBACK PREPARED ' END
       || '$$' || gid || '$$'
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name
"""
