# misconception: LIKE has no sign with a meaning but the underscore
# says: committed: a.b 1 of % $$/3/0, a.b 1% $$/3/0.
finish_sql = r"""
SELECT CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT PREPARED ' ELSE 'ROLLBACK PREPARED ' END
       || quote_literal(gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND gid LIKE replace(name, '_', '\_') || '/%'
"""
