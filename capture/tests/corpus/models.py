"""Whole small programs, as they are written."""
import math


def softmax(x):
    e = xp.exp(x - x.max())
    return e / e.sum()


@calls("A(4, 3)", "A(5, 3)", "A(4, 6)")
def layer_norm(x):
    mean = x.mean(-1)[..., None]
    var = ((x - mean) ** 2).mean(-1)[..., None]
    return (x - mean) / xp.sqrt(var + 1e-5)


@calls("A(4, 3), [(A(3, 5), A(5)), (A(5, 2), A(2))]", "A(6, 3), [(A(3, 5), A(5)), (A(5, 2), A(2))]", "A(4, 3), [(A(3, 2), A(2))]")
def mlp(x, layers):
    for i, (w, b) in enumerate(layers):
        x = x @ w + b
        if i < len(layers) - 1:
            x = xp.maximum(x, xp.zeros(1))
    return x


@calls("A(4, 8), A(4, 8), A(4, 8)", "A(6, 8), A(6, 8), A(6, 8)")
def attention(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    scores = xp.exp(scores - scores.max())
    return (scores / scores.sum(-1)[:, None]) @ v


@calls("A(5, 3), A(3, 4), A(4, 4)", "A(7, 3), A(3, 4), A(4, 4)")
def rnn(x, w, u):
    h = xp.zeros(4)
    out = []
    for t in range(x.shape[0]):
        h = xp.tanh(x[t] @ w + h @ u)
        out.append(h)
    return xp.stack(out)


@calls("A(1) + 10", "A(1) + 3")
def newton(x):
    guess = x / 2
    for _ in range(20):
        nxt = (guess + x / guess) / 2
        if xp.abs(nxt - guess).max() < 1e-6:
            break
        guess = nxt
    return guess


@calls("B(5, 5)", "B(6, 6)")
def life(x):
    b = x * 1
    n = sum(xp.roll(xp.roll(b, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return xp.where((n == 3) | ((b == 1) & (n == 2)), xp.ones_like(b), xp.zeros_like(b))


@calls("A(8), A(3)", "A(10), A(3)")
def convolution(x, w):
    n, k = x.shape[0], w.shape[0]
    return xp.stack([(x[i:i + k] * w).sum() for i in range(n - k + 1)])


@calls("A(6, 2), A(2, 2)", "A(8, 2), A(2, 2)")
def nearest(points, centres):
    d = ((points[:, None] - centres[None]) ** 2).sum(-1)
    return d.argmin(1), d.min()


class Adam:
    def __init__(self, rate=0.1):
        self.rate, self.m, self.v, self.t = rate, 0, 0, 0

    def step(self, w, g):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.99 * self.v + 0.01 * g * g
        m, v = self.m / (1 - 0.9 ** self.t), self.v / (1 - 0.99 ** self.t)
        return w - self.rate * m / (xp.sqrt(v) + 1e-8)


optimiser = Adam()


def adam(x):
    w = x
    for _ in range(3):
        w = optimiser.step(w, w * 2)
    return w, optimiser.t


@calls("A(4)", "A(5)")
def polynomial(x):
    result = 0
    for c in [1.0, -2.0, 0.5]:
        result = result * x + c
    return result


@calls("A(3) * 0.1, 10", "A(3) * 0.1, 12")
def mandelbrot(c, steps):
    z, n = c * 0, c * 0
    for _ in range(steps):
        z = z * z + c
        n = n + (abs(z) < 2)
    return n


@calls("A(6), True", "A(6), False", "A(6), True")
def batch_norm(x, training, state={"mean": 0.0}):
    if training:
        m = x.mean()
        state["mean"] = state["mean"] * 0.9 + 0.1 * m
    else:
        m = state["mean"]
    return x - m


@calls("A(4, 4)", "A(3, 3)")
def power_iteration(x):
    v = xp.ones(x.shape[0])
    for i in range(5):
        v = x @ v
        v = v / xp.sqrt((v * v).sum())
        if i == 3:
            print("nearly")
    return v


@calls("A(8), 3", "A(9), 4")
def moving_average(x, window):
    c = x.cumsum(0)
    return (c[window:] - c[:-window]) / window


@calls("A(3), 'relu'", "A(3), 'tanh'", "A(3), 'none'", "A(3), 'relu'")
def activation(x, kind):
    table = {"relu": lambda v: xp.maximum(v, v * 0), "tanh": xp.tanh}
    return table.get(kind, lambda v: v)(x)


@calls("A(2, 6), 2", "A(2, 6), 3")
def heads(x, n):
    b, d = x.shape
    parts = x.reshape(b, n, d // n)
    return [parts[:, i].sum() for i in range(n)]
