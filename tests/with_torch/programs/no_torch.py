"""Never imports torch: nothing of torch may come in, into the process or into the trace."""
import json
import sys


def f(n):
    return n * 2


total = sum(f(n) for n in range(10))
assert not [name for name in sys.modules if name == "torch" or name.startswith("torch.")]
print(json.dumps({"file": "no_torch.py", "torch": None, "frames": {"f": 10}, "results": {"total": total}}, sort_keys=True))
