"""A tokenizer's loop with prints: breaks in a row, a break in a callee, a break in a loop, breaks in branches."""
import torch

from know import Know

know = Know(__file__)
VOCABULARY = {word: number for number, word in enumerate("the quick brown fox jumps over a lazy dog".split())}


def encode(text):
    return torch.tensor([VOCABULARY.get(word, len(VOCABULARY)) for word in text.split()])


@torch.compile(backend=know.backend())
def embed(tokens, table):
    rows = table[tokens]
    print("rows", tuple(rows.shape))                                # @rows
    means = rows.mean(0)
    print("mean of", len(tokens))                                   # @mean
    return means.softmax(0)


def shout(x):
    x = x * 2
    print("SHOUT")                                                  # @shout
    return x + 1


@torch.compile(backend=know.backend())
def outer(x):
    x = x - 1
    x = shout(x)                                                    # @outer
    return x * 3


@torch.compile(backend=know.backend())
def looped(x, turns):
    for turn in range(turns):
        x = x + turn
        print("turn", turn)
    return x


@torch.compile(backend=know.backend())
def branches(x):
    x = x + 1
    if x.sum() > 0:                                                 # @branch
        return x * 2
    return x * 3


@torch.compile(backend=know.backend())
def by_hand(x):
    y = x.sin()
    torch._dynamo.graph_break()                                     # @hand
    return y.cos()


table = torch.randn(10, 4)
results = []
text = ["the quick brown fox", "jumps over a lazy", "the lazy cat", "dog"]
know.breaks("embed", "rows", times=3)
know.breaks("embed@rows", "mean", times=3)
for turn, line in enumerate(text):
    # 4 words, 4 words, 3 words: from there the length is dynamic; 1 word is a case of its own
    wants = ("compiled", "hit", "compiled", "compiled")[turn]
    results.append(know.call(f"embed: {wants}, embed@rows: {wants}, embed@mean: {'hit' if turn else 'compiled'}",
                             embed, encode(line), table, graphs=(3, 0, 2, 2)[turn]))
know.cause("embed", 1, 0, "L['tokens'].size()[0]", 4, 3, "TENSOR_MATCH")
know.cause("embed", 2, 0, "L['tokens'].size()[0]", 4, 1, "TENSOR_MATCH")
know.cause("embed", 2, 1, "L['tokens'].size()[0]", "2 <= L['tokens'].size()[0]", "L['tokens'].size()[0] = 1")
know.cause("embed@rows", 1, 0, "L['rows'].size()[0]", 4, 3, "TENSOR_MATCH")
know.cause("embed@rows", 2, 0, "L['rows'].size()[0]", 4, 1, "TENSOR_MATCH")
know.cause("embed@rows", 2, 1, "L['rows'].size()[0]", "2 <= L['rows'].size()[0]", "L['rows'].size()[0] = 1")

know.breaks("outer", "outer")
know.breaks("shout", "shout")
results.append(know.call("outer: compiled, shout: compiled, shout@shout: compiled, outer@outer: compiled", outer, torch.ones(3)))
results.append(know.call("outer: hit, shout: hit, shout@shout: hit, outer@outer: hit", outer, torch.ones(3)))

# Within a loop there is no breaking: torch gives the whole frame up.
results.append(know.call("looped: declined", looped, torch.ones(2), 3))
results.append(know.call("looped: skip", looped, torch.ones(2), 3))

know.breaks("branches", "branch")
results.append(know.call("branches: compiled, branches@branch: compiled", branches, torch.ones(2)))
results.append(know.call("branches: hit, branches@branch: hit", branches, torch.ones(2)))
results.append(know.call("branches: hit, branches@branch: compiled", branches, -torch.ones(2) * 9))

know.breaks("by_hand", "hand")
results.append(know.call("by_hand: compiled, by_hand@hand: compiled", by_hand, torch.ones(2)))
know.done(embed, outer, shout, looped, branches, by_hand, results=results)
