"""Programs with `assert`: in a module that no test runner rewrites."""

# ruff: noqa: S101


def asserting(x):
    y = x.sin()
    assert x[0] == 3, "the first is three"
    return y + 1


def asserting_without_words(x):
    assert x[0] == 3
    return x + 1


def caught(x):
    try:
        assert x[0] == 3, "no"
    except AssertionError as error:
        return str(error)
    return "yes"


def after_effects(x, log):
    log.append(1)
    x.add_(1)
    assert x[0] == 3, "no"
    return x


def asserting_bounds(x, n):
    assert n > 2
    assert n < 7, "too many"
    return x[:n] * 2
