"""Generation with a key/value cache that grows by a token each step: one static compile, one dynamic, then hits."""
import torch
import torch.nn.functional as F

from know import Know

know = Know(__file__)
WIDTH, WORDS = 8, 20
embedding, wq, wk, wv = (torch.randn(WORDS, WIDTH), *torch.randn(3, WIDTH, WIDTH))


@torch.compile(backend=know.backend())
def step(token, keys, values):
    x = F.embedding(token, embedding)
    keys, values = torch.cat([keys, (x @ wk)[None]]), torch.cat([values, (x @ wv)[None]])
    attended = F.softmax((x @ wq) @ keys.T, dim=-1) @ values
    logits = (x + attended) @ embedding.T - 100 * F.one_hot(token, WORDS)       # never the same word twice
    return logits.argmax(), keys, values


def generate(token, length, keys, values, wants):
    words = []
    for turn in range(length):
        token, keys, values = know.call(f"step: {wants(turn)}", step, token, keys, values)
        words.append(int(token))
    return words


token = torch.tensor(3)
# Two tokens are there already: torch compiles sizes 0 and 1 apart from all others.
keys = values = torch.randn(2, WIDTH)
keys, values = keys.clone(), keys.clone() * 2
first = generate(token, 8, keys, values, lambda turn: "compiled" if turn < 2 else "hit")
know.cause("step", 1, 0, "L['keys'].size()[0]", 2, 3, "TENSOR_MATCH")
# Again from the start: whichever entry is asked first fits.
second = generate(token, 8, keys, values, lambda turn: "hit")
assert first == second
# Longer than ever.
third = generate(token, 4, torch.randn(300, WIDTH), torch.randn(300, WIDTH), lambda turn: "hit")
# An empty cache is a case of its own: the dynamic entry wants at least two rows, or as many as it had.
know.call("step: compiled", step, token, keys[:0], values[:0])
know.cause("step", 2, 0, "L['keys'].size()[0]", 2, 0, "TENSOR_MATCH")
know.cause("step", 2, 1, "L['keys'].size()[0]", "2 <= L['keys'].size()[0]", "L['keys'].size()[0] = 0")
know.done(step, words=[first, second, third])
