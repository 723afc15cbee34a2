# misconception: a name is a regular expression that matches itself alone
# says: this job is still prepared. still prepared: a.b 1 of
finish_sql = """
SELECT CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT PREPARED ' ELSE 'ROLLBACK PREPARED ' END
       || quote_literal(gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND gid ~ ('^' || name || '/')
"""
