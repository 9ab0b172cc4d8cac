"""A tensor subclass that carries its scale as a Python float."""
import sys

import torch
from torch.utils._pytree import tree_map

FIX = sys.argv[1] if len(sys.argv) > 1 else ""


class Scaled(torch.Tensor):
    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)

    def __init__(self, data, scale):
        self.data_, self.scale = data, scale

    def __tensor_flatten__(self):
        return ["data_"], self.scale

    @staticmethod
    def __tensor_unflatten__(inner, scale, size, stride):
        return Scaled(inner["data_"], scale)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        plain = tree_map(lambda one: one.data_ * one.scale if isinstance(one, Scaled) else one, args)
        return function(*plain, **(kwargs or {}))


@torch.compile(backend="aot_eager")
def apply(x, weight):
    return torch.relu(x @ weight)


torch.manual_seed(0)
x, data = torch.randn(2, 4), torch.randn(4, 4)
total = 0.0
for scale in (1.0, 0.5, 0.25, 1.0, 2.0):
    weight = Scaled(data * scale, 1.0) if FIX == "folded" else Scaled(data, scale)
    total += apply(x, weight).sum().item()
print(f"{total:.4f}")
