# misconception: an underscore in LIKE is an underscore
# says: still prepared: day_1/2/0, day_11/3/0; committed: day_1/3/0
finish_sql = """
SELECT format(CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND gid LIKE name || '/%'
"""
