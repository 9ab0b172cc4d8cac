"""Elements and slices of arrays, read and written."""


def first(x):
    return x[0] + x[-1]


def sliced(x):
    return x[1:] * 2, x[:-1], x[::2]


@calls("A(3, 4)", "A(2, 5)", "A(3, 4)")
def mixed(x):
    return x[0], x[:, 1], x[1, 2], x[..., 0], x[None, :, 1:3]


@calls("A(5), 1", "A(5), 2", "A(5), -1", "A(5), 7")
def by_number(x, i):
    return x[i] * 2


@calls("A(5), I(3)", "A(5), I(3) * 0")
def by_array(x, index):
    return x[abs(index) % 5]


def by_mask(x):
    return x[x > 0] * 2


def by_list(x):
    return x[[0, 2, 1]]


def out_of_range(x):
    return x[10]


def too_many(x):
    return x[0, 0, 0]


def element_written(x):
    x[0] = 5
    return x * 2


def slice_written(x):
    x[1:] = x[:-1] * 2
    return x.sum()


def element_added(x):
    x[0] += 1
    x[1] *= 3
    return x


def mask_written(x):
    x[x < 1] = 0
    return x


def copy_written(x):
    y = x + 0
    y[0] = 100
    return x, y


def view_written(x):
    y = x[1:]
    y[0] = 100
    return x, y


def view_added(x):
    y = x[:2]
    y += 1
    return x


@calls("A(4, 4)")
def loop_written(x):
    for i in range(4):
        x[i, i] = i
    return x


@calls("A(6), 2, 5", "A(6), 1, 3", "A(6), 0, 6")
def by_bounds(x, low, high):
    return x[low:high].sum()


@calls("A(4, 3)", "A(5, 3)")
def rows(x):
    return x[0] + x[len(x) - 1]


def element_as_index(x):
    i = int(abs(x[0])) % 3
    return x[i]


def data_as_index(x):
    return x[x.argmax()]


def new_axes(x):
    return x[:, None] * x[None, :]


def deleted(x):
    y = [x, x + 1]
    del y[0]
    del x
    return y
