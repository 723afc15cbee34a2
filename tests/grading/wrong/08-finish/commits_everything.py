# misconception: what is prepared has voted yes, so it is committed
# says: A decided batch was rolled back, or an undecided one was committed.
finish_sql = """
SELECT format(CASE WHEN true THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name
"""
