CREATE TABLE rows (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "offset" bigint NOT NULL, key text NOT NULL,
  value bigint NOT NULL, batch bigint NOT NULL, attempt bigint NOT NULL, handle text, number bigint,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE totals (
  key text PRIMARY KEY, "offset" bigint NOT NULL, value bigint NOT NULL, batch bigint NOT NULL, attempt bigint NOT NULL
);
CREATE TABLE changes (
  number bigint PRIMARY KEY, "offset" bigint NOT NULL, key text NOT NULL, value bigint NOT NULL,
  batch bigint NOT NULL, attempt bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE markers (query text, batch bigint, PRIMARY KEY (query, batch));
CREATE TABLE epochs (query text PRIMARY KEY, incarnation bigint NOT NULL);
CREATE TABLE committed (handle text PRIMARY KEY);
CREATE TABLE staged (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, handle text NOT NULL,
  offsets text NOT NULL, keys text NOT NULL, given text NOT NULL, batches text NOT NULL, attempts text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE staged ALTER COLUMN offsets SET STORAGE EXTERNAL, ALTER COLUMN keys SET STORAGE EXTERNAL,
  ALTER COLUMN given SET STORAGE EXTERNAL, ALTER COLUMN batches SET STORAGE EXTERNAL,
  ALTER COLUMN attempts SET STORAGE EXTERNAL;
CREATE INDEX staged_of_handle ON staged (handle);
CREATE FUNCTION my_start() RETURNS timestamptz LANGUAGE sql
AS 'SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()';
CREATE UNLOGGED TABLE opened (
  handle text PRIMARY KEY, number bigint GENERATED ALWAYS AS IDENTITY,
  pid integer NOT NULL DEFAULT pg_backend_pid(), started timestamptz NOT NULL DEFAULT my_start()
);
CREATE SEQUENCE visible_number;
CREATE TABLE visible (
  handle text PRIMARY KEY, number bigint NOT NULL DEFAULT nextval('visible_number'),
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE FUNCTION note_total() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO changes VALUES (nextval('visible_number'), NEW."offset", NEW.key, NEW.value, NEW.batch, NEW.attempt);
  RETURN NULL;
END $$;
CREATE TRIGGER total_set AFTER INSERT OR UPDATE ON totals FOR EACH ROW EXECUTE FUNCTION note_total();
