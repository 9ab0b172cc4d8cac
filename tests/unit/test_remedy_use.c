/* What a line of the program does with a number, by its text. */
#include <stdio.h>

#include "trace/remedy.h"

static int failures;

static void use_is(const char *line, const char *expression, enum remedy_use expected)
{
    enum remedy_use is = remedy_find_use(line, expression);

    if (is == expected)
        return;
    printf("FAIL %s in %s: is %d, expected %d\n", expression, line, is, expected);
    failures++;
}

int main(void)
{
    use_is("return x * scale", "scale", USE_COMPUTED);
    use_is("self._count += 1", "self._count", USE_COUNTED);
    use_is("made += 1", "made", USE_COUNTED);
    use_is("y = x[:cache[\"end\"]]", "cache['end']", USE_SLICED);
    use_is("state[\"step\"] += 1", "state['step']", USE_COUNTED);
    use_is("self.kv.size *= 2", "self.size", USE_COUNTED);
    use_is("made = made + 1", "made", USE_COMPUTED);
    use_is("if made == 1", "made", USE_TESTED);
    use_is("made", "made", USE_COMPUTED);
    use_is("y = f(x, 2 * n)", "n", USE_COMPUTED);
    use_is("y = f(x, n=n)", "n", USE_PASSED);
    use_is("y = f(x, n=2 * n)", "n", USE_COMPUTED);
    use_is("y = f(x, n=2)", "n", USE_COMPUTED);
    use_is("n = f(n)", "n", USE_COMPUTED);
    use_is("y = x[:, 0] * n", "n", USE_COMPUTED);
    use_is("y = x[n]", "n", USE_KEY);
    use_is("y = table[ self.theta ] * 2", "self.theta", USE_KEY);
    use_is("y = self.tables()[theta]", "theta", USE_KEY);
    use_is("y = a if b == 1 else table[self.theta]", "self.theta", USE_KEY);
    use_is("return table[theta] == 1", "theta", USE_KEY);
    use_is("y = table[theta, 0]", "theta", USE_COMPUTED);
    use_is("y = table[-theta]", "theta", USE_COMPUTED);
    use_is("y = [theta]", "theta", USE_COMPUTED);
    use_is("y = (1, [theta])", "theta", USE_COMPUTED);
    use_is("y = table[theta", "theta", USE_COMPUTED);
    use_is("state[name] = x.sum()", "name", USE_STORED);
    use_is("state[name]=x", "name", USE_STORED);
    use_is("state['a'][name] = x", "name", USE_STORED);
    use_is("if state[name] == x", "name", USE_TESTED);
    use_is("at = torch.arange(3) + self.size", "self.kv.cache.size", USE_COMPUTED);
    use_is("if scale > 1.0", "scale", USE_TESTED);
    use_is("elif x.sum() and scale", "scale", USE_TESTED);
    use_is("while n > 3", "n", USE_TESTED);
    use_is("assert n", "n", USE_TESTED);
    use_is("y = a if n else b", "n", USE_TESTED);
    use_is("y = n if a else b", "n", USE_COMPUTED);
    use_is("y = b if a else 2 * n", "n", USE_COMPUTED);
    use_is("y = b if a else c if n else d", "n", USE_COMPUTED); /* only the first condition is read */
    use_is("y = [a for a in b if a > n]", "n", USE_TESTED);
    use_is("scores = q @ keys[:position + 1].t()", "position", USE_SLICED);
    use_is("y = x[f(a)[0]:n, 1]", "n", USE_SLICED);
    use_is("y = x[max(n, 2):]", "n", USE_SLICED);
    use_is("y = x[n][1:2]", "n", USE_KEY);
    use_is("for i in range(1, n)", "n", USE_SLICED);
    use_is("for i in my_range(1, n + 1)", "n", USE_COMPUTED);
    use_is("return F.dropout(x, p)", "p", USE_PASSED);
    use_is("return F.dropout(x, p=rate , training=True)", "rate", USE_PASSED);
    use_is("return f(self.rate)", "self.rate", USE_PASSED);
    use_is("return (rate)", "rate", USE_COMPUTED);
    use_is("return f(-rate)", "rate", USE_COMPUTED);
    use_is("return x", "rate", USE_ANY);
    use_is("return separate", "rate", USE_ANY);
    use_is("return rate_of(x)", "rate", USE_ANY);
    use_is("", "rate", USE_ANY);
    use_is("return x", "", USE_ANY);
    use_is(")]: n", "n", USE_COMPUTED);
    return failures > 0;
}
