# misconception: what was not decided needs no end
# says: still prepared: counts/8/0, sales/7/0; committed: counts/6/0, counts/7/0.
finish_sql = """
SELECT format(CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name AND split_part(gid, '/', 2)::int <= decided
"""
