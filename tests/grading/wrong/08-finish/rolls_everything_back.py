# misconception: the job is dead, so nothing of it counts
# says: still prepared: sales/7/0; committed: nothing
finish_sql = """
SELECT format(CASE WHEN false THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name
"""
