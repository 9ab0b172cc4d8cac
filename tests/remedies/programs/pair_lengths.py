"""Queries and documents of different lengths in each batch."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager", dynamic=True if FIX == "dynamic" else None)
def similarity(queries, documents):
    queries = queries / queries.norm(dim=-1, keepdim=True)
    documents = documents / documents.norm(dim=-1, keepdim=True)
    return (queries @ documents.t()).amax(-1).sum()


torch.manual_seed(0)
total = 0.0
for q, d in ((4, 9), (4, 12), (6, 12), (3, 7), (5, 10)):
    total += similarity(torch.randn(q, 8), torch.randn(d, 8)).item()
print(f"{total:.4f}")
