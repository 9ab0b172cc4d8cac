"""Exceptions: raised, caught, passed on; blocks that end in any way."""
import functools


class Own(Exception):
    def __init__(self, n):
        super().__init__(n)
        self.n = n


def raised(x):
    y = x + 1
    raise ValueError("no", y.shape)


@calls("A(3), 1", "A(3), 0", "A(3), 1")
def raised_sometimes(x, n):
    y = x * 2
    if n == 0:
        raise KeyError(n)
    return y + n


def caught(x):
    try:
        y = x + 1
        raise Own(3)
    except Own as error:
        y = y * error.n
    return y


def caught_from_library(x):
    try:
        return x + xp.ones(x.shape[0] + 1)
    except (ValueError, RuntimeError) as error:
        log(type(error).__name__)
        return x * 2


def not_caught(x):
    try:
        return {}["k"]
    except ValueError:
        return x


def finally_runs(x):
    try:
        return x + 1
    finally:
        log("finally")


def finally_after_error(x):
    try:
        x = x + 1
        raise Own(1)
    finally:
        log("finally")


def finally_overrides(x):
    try:
        raise Own(1)
    finally:
        return x * 2


def with_else(x):
    try:
        y = x + 1
    except ValueError:
        y = x
    else:
        y = y * 2
    finally:
        y = y + 1
    return y


def raised_again(x):
    try:
        raise Own(5)
    except Own:
        log("seen")
        raise


def raised_from(x):
    try:
        raise Own(5)
    except Own as error:
        raise ValueError("second") from error


def raised_in_handler(x):
    try:
        raise Own(5)
    except Own as error:
        raise ValueError("second")


def nested(x):
    try:
        try:
            x = x + 1
            raise Own(1)
        except KeyError:
            x = x * 100
    except Own as error:
        x = x * (error.n + 2)
    return x


def helper(v, n):
    if n:
        raise Own(n)
    return v + 1


def raised_in_helper(x):
    return helper(x, 0) + helper(x, 3)


def caught_from_helper(x):
    try:
        return helper(x, 2)
    except Own as error:
        return x * error.n


def in_loop(x):
    for i in range(4):
        try:
            if i == 2:
                raise Own(i)
            x = x + i
        except Own:
            x = x * 10
            continue
        finally:
            log(i)
    return x


def break_in_try(x):
    try:
        x = x + 1
        print("inside")
        x = x * 2
    except ValueError:
        x = x * 100
    return x + 1


def break_in_handler(x):
    try:
        raise Own(1)
    except Own:
        print("handler")
        x = x + 1
    return x * 2


def work_in_handler(x):
    try:
        raise Own(1)
    except Own as error:
        x = xp.sin(x) * error.n
        x = x + 1
    return x * 2


def error_deleted(x):
    try:
        raise Own(1)
    except Own as error:
        pass
    try:
        return error
    except NameError as again:
        return str(again), x + 1


def group(x):
    try:
        raise ExceptionGroup("both", [Own(1), KeyError(2)])
    except* Own as errors:
        log(len(errors.exceptions))
        x = x + 1
    except* KeyError:
        x = x * 2
    return x


def stop_iteration(x):
    raise StopIteration(3)


def assertion(x):
    assert x.ndim == 2, f"{x.ndim} dimensions"
    return x


def zero_division(x):
    return x * (1 / (x.ndim - 1))


def context_kept(x):
    try:
        helper(x, 1)
    except Own as error:
        return error.__context__, error.__traceback__.tb_next.tb_lineno, x


def attribute_error(x):
    y = x + 1
    return None.shape


def type_error(x):
    y = x + 1
    return y(1)


def system_exit(x):
    y = x + 1
    raise SystemExit(3)


@calls("A(3), 5", "A(3), None", "A(3), [1, 2]", "A(3), 5")
def unpacks_what_is_none(x, what):
    y = x + 1
    a, b = what
    return y * a, b


@calls("A(3), 5", "A(3), None", "A(3), [1, 2]", "A(3), 5")
def reduces_what_is_none(x, what):
    return x + 1, functools.reduce(lambda a, b: a + b, what)


@calls("A(3), 5", "A(3), None", "A(3), [1, 2]", "A(3), 5")
def takes_what_is_none(x, what):
    return x + 1, [1, *what]


@calls("A(3), {'a': 1}", "A(3), ()", "A(3), [('a', 1)]", "A(3), [1]", "A(3), {'a': 1}")
def keywords_of_what_is_none(x, what):
    return x + 1, {"k": 1, **what}


@calls("A(3), {'a': 1}", "A(3), ()", "A(3), [('a', 1)]", "A(3), [1]", "A(3), {'a': 1}")
def passes_what_is_none(x, what):
    return x + 1, dict(k=1, **what)


def made_of_what_it_cannot_be(x):
    try:
        return set(isinstance(x, Own))
    except TypeError as error:
        log(str(error))
    try:
        return functools.partial(5)
    except TypeError as error:
        log(str(error))
    try:
        return UnicodeError, UnicodeDecodeError(5)
    except TypeError as error:
        log(str(error))
    return x + 1
