"""Makes traces for measurements, and keeps them in build/ for later runs."""
import os
import sqlite3
import subprocess

from interpreters import BENCH

ROOT = os.path.dirname(BENCH)


def made_trace(name, fill):
    """Return the path of the trace build/NAME.db. If it does not exist, create it, and fill it by FILL(db). Like the recorder, create
    the indexes of the large tables at the end."""
    path = os.path.join(ROOT, "build", f"{name}.db")
    if os.path.exists(path):
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = path + ".part"
    if os.path.exists(part):
        os.unlink(part)
    db = sqlite3.connect(part)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
    files = [os.path.join(ROOT, name) for name in ("src/vocabulary.h", "schemas/trace.sql", "schemas/views.sql")]
    command = ["awk", "-f", os.path.join(ROOT, "schemas/names.awk"), *files]
    db.executescript(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
    late = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ('lookup', 'guard_check')"
                      " AND sql IS NOT NULL").fetchall()
    for index, _ in late:
        db.execute(f"DROP INDEX {index}")
    fill(db)
    for _, sql in late:
        db.execute(sql)
    db.commit()
    db.close()
    os.rename(part, path)
    return path
