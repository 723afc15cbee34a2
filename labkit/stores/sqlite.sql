-- The tables, the view and the triggers of an SQLite store; labkit/stores/sqlite.py explains them.
PRAGMA journal_mode = WAL;
CREATE TABLE rows (
  id INTEGER PRIMARY KEY, offset INTEGER NOT NULL, key TEXT NOT NULL, value INTEGER NOT NULL,
  batch INTEGER NOT NULL, attempt INTEGER NOT NULL, handle TEXT
);
CREATE INDEX rows_of_handle ON rows (handle) WHERE handle IS NOT NULL;
CREATE TABLE totals (
  key TEXT PRIMARY KEY NOT NULL, offset INTEGER NOT NULL, value INTEGER NOT NULL,
  batch INTEGER NOT NULL, attempt INTEGER NOT NULL
);
CREATE TABLE opened (number INTEGER PRIMARY KEY AUTOINCREMENT, handle TEXT NOT NULL UNIQUE);
CREATE TABLE prepared (handle TEXT PRIMARY KEY NOT NULL);
CREATE TABLE committed (handle TEXT PRIMARY KEY NOT NULL);
CREATE TABLE markers (query TEXT NOT NULL, batch INTEGER NOT NULL, PRIMARY KEY (query, batch));
CREATE TABLE changes (
  id INTEGER PRIMARY KEY AUTOINCREMENT, offset INTEGER NOT NULL, key TEXT NOT NULL, value INTEGER NOT NULL,
  batch INTEGER NOT NULL, attempt INTEGER NOT NULL
);
CREATE VIEW visible AS
  SELECT id, offset, key, value, batch, attempt FROM rows
  WHERE handle IS NULL OR handle IN (SELECT handle FROM committed);
CREATE TRIGGER row_appended AFTER INSERT ON rows WHEN NEW.handle IS NULL BEGIN
  INSERT INTO changes (offset, key, value, batch, attempt)
  VALUES (NEW.offset, NEW.key, NEW.value, NEW.batch, NEW.attempt);
END;
CREATE TRIGGER total_set AFTER INSERT ON totals BEGIN
  INSERT INTO changes (offset, key, value, batch, attempt)
  VALUES (NEW.offset, NEW.key, NEW.value, NEW.batch, NEW.attempt);
END;
CREATE TRIGGER total_replaced AFTER UPDATE ON totals BEGIN
  INSERT INTO changes (offset, key, value, batch, attempt)
  VALUES (NEW.offset, NEW.key, NEW.value, NEW.batch, NEW.attempt);
END;
CREATE TRIGGER handle_committed AFTER INSERT ON committed BEGIN
  INSERT INTO changes (offset, key, value, batch, attempt)
  SELECT offset, key, value, batch, attempt FROM rows WHERE handle = NEW.handle ORDER BY id;
END;
