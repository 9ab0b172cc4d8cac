"""A quantum gate whose phase, a complex number, is another one in each step."""
import cmath
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def apply_gate(state, phase):
    return state * phase + state.roll(1)


state = torch.ones(4, dtype=torch.complex64) / 2
for i in range(12):
    phase = cmath.exp(0.1j * i)
    state = apply_gate(state, torch.tensor(phase) if FIX == "tensor" else phase)
    state = state / state.abs().square().sum().sqrt()
print(f"{state.real.sum().item():.4f}")
