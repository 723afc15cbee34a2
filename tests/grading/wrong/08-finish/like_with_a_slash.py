# misconception: an underscore in LIKE is an underscore
# says: A transaction was finished that is not this job's.
finish_sql = """
SELECT format(CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND gid LIKE name || '/%'
"""
