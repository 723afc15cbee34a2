# misconception: an orphan is an orphan, whoever prepared it
# says: still prepared: nothing
finish_sql = """
SELECT format(CASE WHEN gid LIKE '%/%' AND split_part(gid, '/', 2)::int <= decided
              THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE database = current_database()
"""
