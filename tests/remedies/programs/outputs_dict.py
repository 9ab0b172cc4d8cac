"""Stages put their outputs into one dict, each under a key of its own, so that the dict is longer at each call."""
import sys

import torch

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


@torch.compile(backend="eager")
def stage(state, name):
    state["hidden"] = torch.tanh(state["hidden"] * 0.5)
    state[name] = state["hidden"].sum()


@torch.compile(backend="eager")
def stage_of(hidden):
    hidden = torch.tanh(hidden * 0.5)
    return hidden, hidden.sum()


state = {"hidden": torch.ones(4)}
names = [f"stage{i}" for i in range(10)]
for name in names:
    if FIX == "return":
        state["hidden"], state[name] = stage_of(state["hidden"])
    else:
        stage(state, name)
print(f"{sum(state[name].item() for name in names):.4f}")
