"""Rows of `frame` as tests think of them: with parent_id and end_ns, which SQLite computes from what is stored.

    with frame_rows(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO frame_rows VALUES (2, 1, 1, 7, 0, 0, 1000, 3000, NULL, 0)")
        db.execute("UPDATE frame_rows SET end_ns = 2000 WHERE frame_id = 2")
"""
VALUES = {
    "start_ns": "NEW.start_ns",
    "took_ns": "iif(typeof(NEW.end_ns) = 'text', NEW.end_ns, NEW.end_ns - NEW.start_ns)",
    "parent_distance": "NEW.frame_id - NEW.parent_id",
    **{name: f"NEW.{name}" for name in "code_id thread_id exit kind outcome cache_entry_id frame_id".split()},
}
VIEW = f"""
CREATE TEMP VIEW IF NOT EXISTS frame_rows AS
SELECT frame_id, thread_id, parent_id, code_id, kind, outcome, start_ns, end_ns, cache_entry_id, exit FROM frame;
CREATE TEMP TRIGGER IF NOT EXISTS frame_rows_insert INSTEAD OF INSERT ON frame_rows BEGIN
    INSERT INTO frame({', '.join(VALUES)}) VALUES ({', '.join(VALUES.values())});
END;
CREATE TEMP TRIGGER IF NOT EXISTS frame_rows_update INSTEAD OF UPDATE ON frame_rows BEGIN
    UPDATE frame SET {', '.join(f'{name} = {value}' for name, value in VALUES.items())} WHERE frame_id = OLD.frame_id;
END;
"""


def frame_rows(db):
    """DB, with the view."""
    db.executescript(VIEW)
    return db
