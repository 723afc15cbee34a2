# misconception: the view lists only this database
# says: prepared transaction belongs to another database
finish_sql = """
SELECT format(CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE split_part(gid, '/', 1) = name
"""
