"""`if n in table`, where the table is a dict of ints: the number cannot be a tensor."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def embed(x, table, n):
    if n in table:
        return x + 1
    return x + 2


@torch.compile(backend="eager")
def embed_known(x, known):
    return x + 1 if known else x + 2


x = torch.zeros(2)
table = {2: "two", 4: "four", 6: "six"}
out = []
for n in range(1, 12):
    y = embed_known(x, n in table) if FIX == "outside" else embed(x, table, n)
    out.append(y[0].item())
print(out)
