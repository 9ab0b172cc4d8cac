"""Evaluation by sliding windows: each window is passed as a slice."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def window_energy(signal, window):
    return signal[window].square().mean()


signal = torch.arange(64.0)
total = 0.0
for i in range(12):
    if FIX == "cut":
        total += window_energy(signal[4 * i : 4 * i + 8], slice(None)).item()
    elif FIX == "index":
        total += window_energy(signal, torch.arange(4 * i, 4 * i + 8)).item()
    else:
        total += window_energy(signal, slice(4 * i, 4 * i + 8)).item()
print(f"{total:.3f}")
