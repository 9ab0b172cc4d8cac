"""Tables of figures, for a terminal and for docs/costs.md."""


class Table:
    def __init__(self, name, title, columns, notes=()):
        self.name = name
        self.title = title
        self.columns = columns
        self.rows = []
        self.notes = list(notes)
        self.raw = []  # the measurements from which the rows were computed, for --json

    def add(self, *row):
        self.rows.append([str(cell) for cell in row])

    def text(self):
        lines = [self.title, "-" * len(self.title)]
        grid = [self.columns] + self.rows
        widths = [max(len(row[i]) for row in grid) for i in range(len(self.columns))]
        for row in grid:
            cells = [cell.ljust(w) if is_left(i, self) else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines + [f"  * {note}" for note in self.notes]) + "\n"

    def markdown(self):
        lines = [f"**{self.title}**", ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        lines.append("|" + "|".join(":--" if is_left(i, self) else "--:" for i in range(len(self.columns))) + "|")
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines + [""] + [f"* {note}" for note in self.notes]) + "\n"

    def as_dict(self):
        return {"name": self.name, "title": self.title, "columns": self.columns, "rows": self.rows,
                "notes": self.notes, "raw": self.raw}


def is_left(column, table):
    """Is COLUMN aligned to the left, because it has words and not numbers?"""
    return all(not row[column][:1].isdigit() for row in table.rows if row[column] not in ("", "-"))


def verdict(good):
    return "pass" if good else "MISS"


def at_most(value, target, form="{:.2f}"):
    """Return the cells for a measured VALUE, its TARGET and the verdict: ('1.18', '<= 1.25', 'pass')."""
    return form.format(value), "<= " + form.format(target), verdict(value <= target)


def at_least(value, target, form="{:.2f}"):
    return form.format(value), ">= " + form.format(target), verdict(value >= target)
