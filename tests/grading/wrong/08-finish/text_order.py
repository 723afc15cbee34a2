# misconception: numbers in a text compare as numbers
# says: committed: counts/10/0, counts/9/0
finish_sql = """
SELECT format(CASE WHEN split_part(gid, '/', 2) <= decided::text THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name
"""
