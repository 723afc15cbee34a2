# misconception: what is prepared has voted yes, so it is committed
# says: committed: counts/6/0, counts/7/0, counts/8/0
finish_sql = """
SELECT format(CASE WHEN true THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name
"""
