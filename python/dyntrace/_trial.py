"""For `dyntrace try`: counts the calls of one function, and keeps or compares their return values.

Runs in: the traced process, before and after calls of the function (src/tracer/torch/bridge.c).
Trace functions do not see this code. The program behaves as without this code, except that --calls
N ends the program at the call after the Nth.

`dyntrace try` runs the program first unchanged and then under settings. The unchanged run writes a
line of JSON for each call into NAME.index, which describes the return value, and the numbers in
tensors and arrays into NAME.data. A run under a setting compares each of its calls with the next
line, and writes a line into NAME.verdict: equal, close, different, or unknown. NAME is RANK.N for
the Nth process of this rank that called the function.
"""

import json
import os
import sys

EQUAL, CLOSE, DIFFERENT, UNKNOWN = "equal", "close", "different", "unknown"
_ORDER = EQUAL, CLOSE, UNKNOWN, DIFFERENT
# most bytes of numbers that a process stores; of further numbers it stores only hashes
DATA_MOST = 256 << 20
DEPTH_MOST, ITEMS_MOST = 8, 10000
_PLAIN = type(None), bool, int, str, bytes
_NUMBERS = int, float, complex
_WIDER = {"float16": "float32", "bfloat16": "float32", "complex32": "complex64"}


class Watch:
    """Counts the calls of one function in this process, and keeps or compares their return
    values."""

    def __init__(self):
        # the highest number of calls; the folder to write into; the folder of the unchanged run
        self.calls = self.values = self.against = None
        self.rtol = 1e-5
        self._begin_counting()

    def _begin_counting(self):
        self.process, self.count, self.keeper = os.getpid(), 0, None

    def __call__(self):
        """Note that a call begins. Returns the function to call with the return value, or None."""
        # the process was forked since the last call, so begin to count anew
        if self.process != os.getpid():
            self._begin_counting()
        self.count += 1
        if self.calls is not None and self.count > self.calls:
            _end_process()
        return self._end_call if self.values else None

    def _end_call(self, *value):
        """Note that a call has ended. VALUE is a tuple with the return value, or is empty if the
        call raised."""
        if self.keeper is None:
            self.keeper = (Comparer if self.against else Keeper)(self)
        self.keeper.handle_value(value)


def _end_process():
    """End this process as if the program had ended by itself at this call."""
    for stream in sys.stdout, sys.stderr:
        try:
            stream.flush()
        except Exception:  # the stream is closed, or does not exist
            pass
    os._exit(0)


# ---- keeping ----


class Keeper:
    """Writes a description of each call's return value into the file NAME.index."""

    suffix = ".index"

    def __init__(self, watch):
        self.name, self.file = _make_file(watch.values, self.suffix)
        self.data, self.written = None, 0
        self.path = os.path.join(watch.values, self.name + ".data")

    def handle_value(self, value):
        try:
            with _Undisturbed():
                line = json.dumps(describe(value, self.store_numbers))
        except Exception as error:
            line = json.dumps(["?", type(error).__name__])
        _write_line(self.file, line)

    def store_numbers(self, numbers):
        """Store NUMBERS, a bytes object, in the file NAME.data. Returns their offset in the file,
        or -1 if the file is full."""
        if self.written + len(numbers) > DATA_MOST:
            return -1
        if self.data is None:
            self.data = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        at = self.written
        while numbers:
            numbers = numbers[os.write(self.data, numbers) :]
        self.written = os.lseek(self.data, 0, os.SEEK_CUR)
        return at


def _make_file(folder, suffix):
    """Create a file for this process. Returns its name without SUFFIX, and its descriptor."""
    rank = os.environ.get("RANK", "0")
    for number in range(10000):
        name = "%s.%d" % ("".join(one for one in rank if one.isalnum()), number)
        try:
            path = os.path.join(folder, name + suffix)
            return name, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            pass
    raise OSError("too many processes")


def _write_line(file, line):
    os.write(file, line.encode("ascii", "backslashreplace") + b"\n")


class _Undisturbed:
    """A context manager inside which torch's modes and autograd see no operations on tensors."""

    def __enter__(self):
        import contextlib

        self.stack = contextlib.ExitStack()
        torch = sys.modules.get("torch")
        if torch is None:
            return
        self.stack.enter_context(torch._C.DisableTorchFunction())
        modes = getattr(
            sys.modules.get("torch.utils._python_dispatch"), "_disable_current_modes", None
        )
        if modes:
            self.stack.enter_context(modes())
        self.stack.enter_context(torch.no_grad())

    def __exit__(self, *error):
        self.stack.close()


# ---- describing return values ----


def _hash_bytes(numbers):
    import hashlib

    return hashlib.blake2b(numbers, digest_size=16).hexdigest()


def _read_numbers(value):
    """Return (kind, dtype, shape, bytes) of a tensor or array. Returns None for other values, and
    for tensors without plain data.

    Numbers of half precision are converted to a wider type, so that struct can read them.
    """
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter):
        if value.layout is not torch.strided or value.is_quantized or value.device.type == "meta":
            return None
        import ctypes

        dtype = str(value.dtype)[len("torch.") :]
        plain = value.detach().resolve_conj().resolve_neg().cpu()
        if dtype in _WIDER:
            plain = plain.to(getattr(torch, _WIDER[dtype]))
        plain = plain.contiguous()
        size = plain.numel() * plain.element_size()
        data = ctypes.string_at(plain.data_ptr(), size) if size else b""
        return "tensor", dtype, list(value.shape), data
    if numpy is not None and type(value) is numpy.ndarray and value.dtype.kind in "biufc":
        plain = value.astype("float32") if value.dtype.name == "float16" else value
        return "array", value.dtype.name, list(value.shape), plain.tobytes()
    return None


def _is_number(value):
    generic = getattr(sys.modules.get("numpy"), "number", None)
    return type(value) in _NUMBERS or generic is not None and isinstance(value, generic)


def _to_python_number(value):
    """Convert VALUE, a number of Python or numpy, to a number of Python."""
    return value if type(value) in _NUMBERS else value.item()


def _split_container(value):
    """Return (name of the type, [(key, item), ...]) of a container; None if VALUE is no
    container."""
    name = type(value).__qualname__
    if isinstance(value, (list, tuple)):
        inner = (list if isinstance(value, list) else tuple).__iter__(value)
        return name, list(enumerate(inner))
    if isinstance(value, dict):
        return name, [(repr(key)[:200], one) for key, one in dict.items(value)]
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        own = object.__getattribute__(value, "__dict__")
        return name, [(key, own[key]) for key in fields if key in own]
    return None


def describe(value, keep, depth=0):
    """Describe VALUE by lists and texts, which json can write. At depth 0, VALUE is the tuple that
    Watch._end_call() gets. KEEP(bytes) stores numbers in a file and returns their offset in the
    file."""
    if depth == 0:
        return ["returned", describe(value[0], keep, 1)] if value else ["raised"]
    if type(value) in _PLAIN and type(value) is not int:
        return [
            "is",
            type(value).__name__,
            _hash_bytes(repr(value).encode("utf-8", "backslashreplace")),
        ]
    if _is_number(value):
        number = _to_python_number(value)
        return ["number", type(number).__name__, repr(number)]
    numbers = _read_numbers(value)
    if numbers:
        kind, dtype, shape, data = numbers
        return [kind, dtype, shape, _hash_bytes(data), keep(data), len(data)]
    parts = _split_container(value) if depth < DEPTH_MOST else None
    if parts:
        inner = [[key, describe(one, keep, depth + 1)] for key, one in parts[1][:ITEMS_MOST]]
        return ["parts", parts[0], len(parts[1]), inner]
    return ["object", type(value).__qualname__]


# ---- comparing return values ----


class Comparer:
    """Compares each call's return value with the value that the unchanged run stored for this
    call."""

    def __init__(self, watch):
        self.name, self.file = _make_file(watch.values, ".verdict")
        self.rtol = watch.rtol
        path = os.path.join(watch.against, self.name)
        try:
            self.index = open(path + ".index", "rb")
        except OSError:
            self.index = None
        self.data_path, self.data = path + ".data", None

    def handle_value(self, value):
        try:
            line = self.index.readline() if self.index else b""
            with _Undisturbed():
                verdict = self.compare_call(json.loads(line), value) if line else DIFFERENT
        except Exception:
            verdict = UNKNOWN
        _write_line(self.file, verdict)

    def compare_call(self, old, value):
        if old[0] == "?":
            return UNKNOWN
        if not value or old[0] == "raised":
            return EQUAL if not value and old[0] == "raised" else DIFFERENT
        return self.compare(old[1], value[0], 1)

    def compare(self, old, value, depth):
        """Compare VALUE with OLD, the description that describe() made of a value in the unchanged
        run. Returns the verdict."""
        new = describe(value, lambda data: -1, depth) if not _split_container(value) else None
        if new is None:
            return self.compare_containers(old, value, depth)
        if old[0] in ("tensor", "array", "number") and new[0] in ("tensor", "array", "number"):
            return self.compare_numbers(old, new, value)
        return EQUAL if old == new else DIFFERENT

    def compare_containers(self, old, value, depth):
        name, items = _split_container(value)
        if old[0] == "object" and depth >= DEPTH_MOST:
            return EQUAL if old[1] == name else DIFFERENT
        if old[0] != "parts" or old[1:3] != [name, len(items)]:
            return DIFFERENT
        worst = EQUAL
        for (key, inner), (own, one) in zip(old[3], items):
            verdict = self.compare(inner, one, depth + 1) if key == own else DIFFERENT
            worst = max(worst, verdict, key=_ORDER.index)
        return worst

    def compare_numbers(self, old, new, value):
        if old[0] == new[0] and old[:4] == new[:4]:
            return EQUAL
        before, after = self.read_kept(old), _list_numbers(value)
        if before is None:
            return DIFFERENT  # the hashes differ, but the old numbers were not stored
        if len(before) != len(after):
            return DIFFERENT
        return self.compare_within_tolerance(before, after, old, new)

    def compare_within_tolerance(self, before, after, old, new):
        shapes = [one[2] if one[0] != "number" else [] for one in (old, new)]
        if shapes[0] != shapes[1]:
            return DIFFERENT
        inexact = [_is_inexact(one[1]) for one in (old, new)]
        if all(_is_same_number(a, b) for a, b in zip(before, after)):
            return EQUAL
        if not all(inexact):
            return DIFFERENT
        most = max((abs(one) for one in before if abs(one) < float("inf")), default=0)
        near = self.rtol * most
        fit = all(_is_same_number(a, b) or abs(a - b) <= near for a, b in zip(before, after))
        return CLOSE if fit else DIFFERENT

    def read_kept(self, old):
        """Return the numbers that the description OLD stands for, in order; None if they were not
        stored."""
        if old[0] == "number":
            return [complex(old[2]) if old[1] == "complex" else _parse_number(old)]
        _, dtype, _, _, at, size = old
        if at < 0:
            return None
        if self.data is None:
            self.data = open(self.data_path, "rb")
        self.data.seek(at)
        return _unpack_numbers(self.data.read(size), dtype)


def _parse_number(old):
    return int(old[2]) if old[1] == "int" else float(old[2])


def _is_inexact(dtype):
    return "float" in dtype or "complex" in dtype


def _is_same_number(a, b):
    return a == b or (a != a and b != b)


_CODES = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip


def _unpack_numbers(data, dtype):
    """Return the numbers in the bytes DATA. A complex number counts as two numbers."""
    dtype = _WIDER.get(dtype, dtype)
    code = {"complex64": "f", "complex128": "d"}.get(dtype) or _CODES[dtype]
    return memoryview(data).cast(code) if data else []


def _list_numbers(value):
    if _is_number(value):
        return [_to_python_number(value)]
    _, dtype, _, data = _read_numbers(value)
    return _unpack_numbers(data, dtype)
