"""table.py --dyntrace PROGRAM --python PYTHON [--folder FOLDER]: what dyntrace advises of each program, beside what torch does.

Prints a row for each program and the sums, and exits with 1 where something is wrong. What was recorded stays in FOLDER: a
run that was interrupted goes on there, and one with other rules in remedies.txt records only what they newly advise."""
import argparse
import sys
import tempfile
from pathlib import Path

from recorded import (PRACTICE, PRINTED, Recorder, expected, figure_is_right, figure_of, first_is_right, of_function, settings_in,
                      true_counts, works)


def words(good):
    return "right" if good else "WRONG"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dyntrace", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("name", nargs="*", help="only these programs")
    parser.add_argument("--no-try", action="store_true", help="leave out `dyntrace try`, which runs each program twice more")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="dyntrace-remedies-"))
    folder.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(Path(given.dyntrace).resolve(), given.python, folder)
    recorder.names = given.name or recorder.names
    plain = recorder.plain()
    wanted = recorder.fixes_with_settings()
    fixed = recorder.under(wanted)
    advised = recorder.under([(name, text) for name in plain for text in settings_in(plain[name]["remedies"])])
    tried = {} if given.no_try else recorder.tries(wanted)
    sums = {"counts": [], "first": [], "figures": [], "printed settings that work": [], "settings": [], "try": []}
    print("| program | subject | torch: compiles, eager | best | first remedy | first | figures | printed settings that work | setting = edit | try = edit |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in plain:
        measured, remedies = recorder.measure(name), plain[name]["remedies"]
        sums["counts"].append(plain[name]["counts"] == expected(measured[""]))
        sums["first"].append(first_is_right(name, remedies, measured, advised))
        figures = [figure_is_right(one, true_counts(name, one, measured, advised)) for one in remedies[:PRINTED] if figure_of(one)]
        safe = [works(name, text, measured, advised) for text in settings_in(remedies[:PRINTED])]
        fixes = [(fix, more["setting"]) for fix, more in PRACTICE[name]["fixes"].items() if (name, more["setting"]) in fixed]
        settings = [fixed[name, text].get("counts") == expected(measured[fix]) for fix, text in fixes]
        trials = [tried[name, text] == of_function(measured[fix]) for fix, text in fixes if (name, text) in tried]
        sums["figures"] += figures
        sums["printed settings that work"] += safe
        sums["settings"] += settings
        sums["try"] += trials
        first = remedies[0] if remedies else {"name": "none", "setting": None}
        cells = [name, PRACTICE[name]["subject"], f"{measured['']['compiles']}, {measured['']['eager']}",
                 ", ".join(PRACTICE[name]["best"]) or "as it is", first["setting"] or first["name"], words(sums["first"][-1])]
        cells += [f"{sum(some)} of {len(some)}" if some else "" for some in (figures, safe, settings, trials)]
        print("| " + " | ".join(cells) + " |")
    print()
    for title, some in sums.items():
        print(f"{title}: {sum(some)} of {len(some)}")
    return not all(all(some) for some in sums.values())


if __name__ == "__main__":
    sys.exit(main())
