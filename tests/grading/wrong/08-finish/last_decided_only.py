# misconception: only the last decided batch can be prepared
# says: undecided one was committed. still prepared: sales/7/0; committed: counts/7/0.
finish_sql = """
SELECT CASE WHEN split_part(gid, '/', 2)::int = decided THEN 'COMMIT PREPARED ' ELSE 'ROLLBACK PREPARED ' END
       || quote_literal(gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name
"""
