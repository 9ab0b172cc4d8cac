"""Random calls of functions with many kinds of guards: guards_run.py SEED CALLS FILE. Before each call torch itself is asked, entry
by entry, how many leaf guards a check of it runs; the answers go to FILE. test_guards_run.py holds a trace of this against them."""
import inspect, json, random, sys
import torch
from torch._dynamo.eval_frame import _debug_get_cache_entry_list
seed = int(sys.argv[1]); calls = int(sys.argv[2])
R = random.Random(seed)
torch._dynamo.config.recompile_limit = 6

class Box:
    def __init__(self, n): self.n = n; self.t = torch.ones(3); self.s = "a"
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.lin = torch.nn.Linear(3, 3); self.k = 2; self.flags = {"a": 1, "b": 2}
        self.many = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(20)])
    def forward(self, x, y):
        r = self.lin(x) * self.k + y.to(x.dtype)
        if self.flags["a"] == 1: r = r + self.flags["b"]
        for m in self.many[:3]: r = m(r)
        if self.training: r = r + 1
        return r
G1 = 1; G2 = "x"; GD = {"q": 1, "z": 2.0}
def make(n):
    def inner(x, y): return x * n + y.sum()
    return inner
def f1(x, y, k=2, *rest): return x * k + y.sum() + len(rest)
def f2(a, xs, k=2, *, mode="m"): return sum(x.sum() for x in xs) * k + a.sum() + len(mode)
def f3(d, x):
    r = x
    for k, v in d.items(): r = r + v * len(k)
    return r
def f4(box, x, y): return x * box.n + box.t.sum() + len(box.s) + y.sum()
def f5(x, y, z, w):
    r = x.sum() + y.sum() + z.sum() + w.sum()
    return r * G1 + len(G2) + GD["q"] + GD["z"]
def f6(p, q, r, s, t, u):
    return torch.ones(2) * len(p) + (q or 0) + len(r) + (1 if s is None else s.sum()) + t[0] + u[1]["k"]
def f7(a, b): return a + b
def f8(x, *args, **kw): return x + len(args) + sum(kw.values())
def wide(x, a0=0, a1=0, a2=0, a3=0, a4=0, a5=0, a6=0, a7=0, a8=0, a9=0, b0=0, b1=0, b2=0, b3=0, b4=0, b5=0, b6=0, b7=0, b8=0, b9=0):
    return x + a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + b0 + b1 + b2 + b3 + b4 + b5 + b6 + b7 + b8 + b9
def f9(box):
    r = torch.ones(2)
    if hasattr(box, "extra"): r = r + 1
    if hasattr(box, "more"): r = r + 1
    return r + box.n
net = Net(); g = make(3); h = make(4)
def T():
    t = torch.ones(*[R.choice([2, 3, 3, 3, 4]) for _ in range(R.choice([1, 1, 1, 2]))])
    if R.random() < .2: t = t.double()
    if R.random() < .1: t.requires_grad_()
    return t
def V(): return torch.ones(3, dtype=R.choice([torch.float32] * 4 + [torch.float64]))
def box():
    b = Box(R.choice([1, 1, 2, 3])); b.t = T()
    if R.random() < .2: b.s = "abc"
    if R.random() < .3: b.extra = 1
    if R.random() < .2: b.more = 1
    return b
def args_of(f):
    if f is f1: return (V(), T(), *([R.choice([2, 3])] + [1] * R.choice([0, 0, 1]) if R.random() < .5 else [])), {}
    if f is f2: return (T(), [T() for _ in range(R.choice([2, 2, 3]))], R.choice([2, 2, 3])), R.choice([{}, {}, {"mode": "nn"}])
    if f is f3: return ({k: V() if R.random() < .8 else 2 for k in R.choice([["a", "b"], ["a", "b"], ["b", "a"], ["a", "b", "c"], ["a"]])}, V()), {}
    if f is f4: return (box(), V(), T()), {}
    if f is f5: return (T(), T(), T(), T()), {}
    if f is f6: return (R.choice(["a", "bc"]), R.choice([None, 1, 2]), [1] * R.choice([0, 1, 1]), R.choice([None, T()]), (R.choice([1, 2]), 2), [0, {"k": R.choice([5, 6])}]), {}
    if f is f7:
        a = V(); return (a, R.choice([a, V()])), {}
    if f is f8: return (V(), *[1] * R.choice([0, 1, 2])), R.choice([{}, {"u": 1}, {"u": 2}, {"v": 1, "u": 1}])
    if f is wide: return (V(),), {n: R.choice([0, 1]) for n in R.sample(["a0", "a3", "a7", "a9", "b1", "b5", "b8", "b9"], R.choice([0, 1, 2]))}
    if f is f9: return (box(),), {}
    if f in (g, h): return (V(), T()), {}
    if f is net: return (V().float(), T().sum() + V()), {}
functions = [f1, f2, f3, f4, f5, f6, f7, f8, wide, f9, g, net]
told = []
compiled = {id(f): torch.compile(f, backend="eager", dynamic=R.choice([None, False])) for f in functions}
for _ in range(calls):
    f = R.choice(functions)
    if f is net:
        if R.random() < .3: net.k = R.choice([2, 3])
        if R.random() < .3: net.train(R.random() < .5)
        if R.random() < .2: net.flags["a"] = R.choice([1, 2])
        if R.random() < .2: net.flags["b"] = R.choice([1, 2])
        if R.random() < .1: net.many[1].bias = torch.nn.Parameter(torch.ones(3), requires_grad=R.random() < .5)
    if R.random() < .2: G1 = R.choice([1, 2])
    if R.random() < .2: GD["z"] = R.choice([2.0, 3.0])
    grad = R.random() < .9
    a, k = args_of(f)
    real = f.forward if f is net else f
    code = (real.__func__ if f is net else real).__code__
    sig = inspect.signature(real.__func__ if f is net else real).bind(*((f,) + a if f is net else a), **k); sig.apply_defaults()
    loc = dict(sig.arguments)
    if code.co_freevars: loc.update(zip(code.co_freevars, (c.cell_contents for c in real.__closure__)))
    for n in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)]:
        loc.setdefault(n, () if n in ("rest", "args") else {})
    with torch.set_grad_enabled(grad):
        expected = []
        for e in _debug_get_cache_entry_list(code):
            if not e.guard_manager: continue
            info = e.guard_manager.root.check_verbose(loc)
            expected.append((str(e.compile_id), info.num_guards_executed, info.result))
            if info.result: break
        try: compiled[id(f)](*a, **k)
        except Exception as error: told.append((code.co_qualname, "error: %r" % error)); raise
    told.append((code.co_qualname, expected))
json.dump(told, open(sys.argv[3], "w"))
