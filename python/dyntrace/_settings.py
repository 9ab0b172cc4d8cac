"""The settings of `dyntrace run --set SETTING`, and how each takes effect.

Runs in: the traced process. Before the program starts, `dyntrace run` also executes this file alone
in the program's interpreter, and calls refused(). So the module imports nothing of dyntrace at its
top, and nothing of torch at all.

A setting changes the input of torch, never torch itself. There are three ways: replace an argument
when a call begins (src/tracer/torch/bridge.c), namely of torch.compile(), of torch._dynamo's
_optimize() or of the user's function; force a name of a config module; set a stance.

An impossible setting is refused. If torch's sources show that it is impossible, it is refused
before the program starts. If it turns out later, the traced process records a fact (SETTING) with
the reason, and the program continues without the setting. A fact is also recorded when a setting
takes effect. If a setting never took effect, `run` reports an error when the program has ended.

    SETTING = NAME=VALUE or NAME=VALUE@FUNC
"""

import sys

LOOKED_AT, ALWAYS = range(2)  # the values of enum when in src/tracer/torch/bridge.c
NO_VALUE = LookupError, AttributeError, TypeError
_LITERALS = {"True": True, "False": False, "None": None}
_CONFIGS = {  # config module -> its file in torch's folder
    "torch._dynamo.config": "_dynamo/config.py",
    "torch._inductor.config": "_inductor/config.py",
    "torch.compiler.config": "compiler/config.py",
    "torch.fx.experimental._config": "fx/experimental/_config.py",
}


class Refused(Exception):
    """Raised for a setting that is impossible. The message is the reason."""


# ---- reading torch's sources ----


class Sources:
    """The source files of an installed torch. They are read as text, not imported."""

    def __init__(self, folder):
        self.folder, self._texts, self._configs = folder, {}, {}

    def read_text(self, name):
        if name not in self._texts:
            try:
                with open("%s/%s" % (self.folder, name), encoding="utf-8") as file:
                    self._texts[name] = file.read()
            except OSError:
                self._texts[name] = ""
        return self._texts[name]

    @property
    def version(self):
        import re

        found = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", self.read_text("version.py"))
        return "torch %s" % found[1] if found else "this torch"

    def has_function(self, file, name):
        """Does FILE define the function NAME? Returns True if FILE does not exist."""
        import re

        text = self.read_text(file)
        return not text or re.search(r"^def %s\(" % re.escape(name), text, re.M) is not None

    def list_parameters(self, file, name):
        """Return the parameters of the function NAME in FILE, or None if they are not known. If
        there are several, the last one counts."""
        import ast

        found = None
        for node in _parse_module(self.read_text(file)):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                found = {one.arg for one in node.args.args + node.args.kwonlyargs}
        return found

    def list_backends(self):
        """Return the names of the backends that come with this torch or are installed as
        packages."""
        import glob
        import importlib.metadata
        import re

        names = {"inductor"}
        for path in glob.glob("%s/_dynamo/backends/*.py" % self.folder):
            text = self.read_text(path[len(self.folder) + 1 :])
            names.update(re.findall(r"^@?register_\w*backend\(\s*name=\"([^\"]+)\"", text, re.M))
            names.update(
                re.findall(r"^@register_\w*backend(?:\([^)]*\))?[^\n]*\ndef (\w+)", text, re.M)
            )
        try:
            names.update(
                one.name for one in importlib.metadata.entry_points(group="torch_dynamo_backends")
            )
        except Exception:  # ignore a package whose installation is damaged
            pass
        return names

    def list_modes(self):
        """Return the modes of torch.compile(mode=...), or None if they are not known."""
        import ast

        for node in _parse_module(self.read_text("_inductor/__init__.py")):
            if isinstance(node, ast.FunctionDef) and node.name == "list_mode_options":
                for inner in ast.walk(node):
                    value = getattr(inner, "value", None)
                    if isinstance(inner, (ast.Assign, ast.AnnAssign)) and isinstance(
                        value, ast.Dict
                    ):
                        return {key.value for key in value.keys if isinstance(key, ast.Constant)}
        return None

    def read_config_names(self, module):
        """Return {name: (annotation or "", default or None, alias or None)} for a config module, or
        None if that is not known.

        A name that ends in .* stands for further names that a class in the module may inherit.
        """
        if module not in self._configs:
            found = {}
            _collect_names(_parse_module(self.read_text(_CONFIGS[module])), "", found)
            self._configs[module] = found or None
        return self._configs[module]


def _parse_module(text):
    import ast

    try:
        return ast.parse(text).body
    except SyntaxError:  # the file uses syntax of a newer Python
        return []


def _collect_names(nodes, prefix, found):
    """Add to FOUND the names to which NODES, statements of a config module, assign values."""
    import ast

    for node in nodes:
        if isinstance(node, ast.ClassDef):
            _collect_names(node.body, "%s%s." % (prefix, node.name), found)
            if node.bases or node.decorator_list:
                found["%s%s.*" % (prefix, node.name)] = "", None, None
        elif isinstance(node, (ast.If, ast.Try)):
            for block in "body", "orelse", "finalbody":
                _collect_names(getattr(node, block, ()), prefix, found)
            for handler in getattr(node, "handlers", ()):
                _collect_names(handler.body, prefix, found)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            annotation = (
                ast.unparse(node.annotation)
                if isinstance(node, ast.AnnAssign)
                else "bool" if _is_bool(node.value) else ""
            )
            default, alias = _read_default(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found[prefix + target.id] = annotation, default, alias


def _is_bool(node):
    """Is NODE certainly a bool? It is if it is a comparison or a call of bool()."""
    import ast

    return (
        isinstance(node, ast.Compare)
        or isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "bool"
    )


def _read_default(node):
    """Return (default, alias) of NODE, the value in a config declaration. For a call of Config()
    these are its arguments `default` and `alias`; otherwise the default is the constant NODE."""
    import ast

    keywords = {one.arg: one.value for one in getattr(node, "keywords", ())}
    constant = keywords.get("default", node) if isinstance(node, ast.Call) else node
    alias = keywords.get("alias")
    return (
        constant.value if isinstance(constant, ast.Constant) else None,
        alias.value if isinstance(alias, ast.Constant) else None,
    )


# ---- values ----


def _read_literal(text):
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _read_one_of(text, *words):
    if text not in words:
        raise Refused("is %s, not %s" % (" or ".join(words), text))
    return _LITERALS[text]


def _read_count(text, least):
    value = _read_literal(text)
    if type(value) is not int or value < least:
        raise Refused("is a number from %d on, not %s" % (least, text))
    return value


def convert_config_value(text, annotation, default):
    """Convert TEXT to a value of a config name. ANNOTATION, a text, and DEFAULT are those of the
    declaration of this name."""
    import re

    words = set(re.findall(r"\w+", annotation))
    kinds = words & {"bool", "int", "float", "str", "list", "dict", "set", "tuple"}
    if not annotation and default is not None:
        kinds = {type(default).__name__}
    choices = re.findall(r"['\"]([^'\"]*)['\"]", annotation) if "Literal" in words else []
    value = _read_literal(text)
    if value is None and (default is None or words & {"Optional", "None", "NoneType"}):
        return None
    if type(value).__name__ in kinds:
        return value
    if type(value) is int and "float" in kinds:
        return float(value)
    if text in choices or value in choices:
        return value if value in choices else text
    if "str" in kinds:
        return text
    if kinds or choices:
        raise Refused(
            "is %s, not %s" % (" or ".join(sorted(kinds) + ["'%s'" % one for one in choices]), text)
        )
    return value


# ---- do the user's texts name a function or model? ----


def is_name_of_code(function, code):
    """Does FUNCTION, a text that the user wrote, name CODE? Examples of texts: f, Net.forward,
    model.py:12."""
    name = code.co_qualname
    if function in (name, code.co_name) or name.endswith("." + function):
        return True
    file, colon, line = function.rpartition(":")
    return (
        bool(colon)
        and line == str(code.co_firstlineno)
        and ("/" + code.co_filename).endswith("/" + file)
    )


def is_name_of_model(function, model):
    """Does FUNCTION, a text that the user wrote, name `model`, the argument of torch.compile()? The
    model may be a function, a method, a partial or a torch.nn.Module."""
    for _ in range(8):
        kind = type(model)
        code = getattr(model, "__code__", None) if kind.__name__ == "function" else None
        if code is not None:
            return is_name_of_code(function, code)
        inner = getattr(model, "__func__", None) if kind.__name__ == "method" else None
        if inner is not None and not _is_module(model.__self__):
            model = inner
        elif inner is not None:
            model = model.__self__
        elif kind.__name__ == "partial":
            model = model.func
        else:
            break
    forward = getattr(getattr(type(model), "forward", None), "__code__", None)
    return (
        function == type(model).__qualname__
        or forward is not None
        and is_name_of_code(function, forward)
    )


def _is_module(model):
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    return module is not None and isinstance(model, module)


# ---- sources ----


class Source:
    """A path from a frame's arguments (L) or globals (G) to a value: L['x'], L['a'][0].b; self.k is
    short for L['self'].k."""

    def __init__(self, text):
        import ast

        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise Refused("is no source: %s; write L['x'], self.k or L['args'][0]" % text) from None
        self.text, self.steps = text, []
        self.scope, self.name = self._parse_root(node)

    def __str__(self):
        return self._format(self.steps)

    def write_without_last_step(self):
        """Return the source without its last step, spelled as torch spells sources."""
        return self._format(self.steps[:-1])

    def _format(self, steps):
        text = "%s[%r]" % (self.scope, self.name)
        for kind, key in steps:
            text = (
                "%s.%s" % (text, key)
                if kind == "attribute"
                else "%s[%r]" % (text, key) if kind == "item" else "type(%s)" % text
            )
        return text

    def _parse_root(self, node):
        import ast

        if isinstance(node, ast.Name) and node.id not in "LG":
            return "L", node.id
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in "LG"
        ):
            return node.value.id, self._parse_constant(node.slice)
        root = self._parse_inner(node)
        step = self._parse_step(node)
        if self.steps[-1:] == [("attribute", "__dict__")] and step and step[0] == "item":
            # torch's text for the attribute k of the class of L['x']:
            # dict(type(L['x']).__dict__)['k']
            self.steps[-1] = "attribute", step[1]
        elif step:
            self.steps.append(step)
        return root

    def _parse_inner(self, node):
        import ast

        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return self._parse_root(node.value)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("size", "stride")
        ):
            return self._parse_root(node.func.value)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("type", "dict")
            and len(node.args) == 1
        ):
            return self._parse_root(node.args[0])
        raise Refused("is no source: %s; write L['x'], self.k or L['args'][0]" % self.text)

    def _parse_step(self, node):
        import ast

        if isinstance(node, ast.Attribute):
            return None if node.attr == "shape" else ("attribute", node.attr)
        if isinstance(node, ast.Subscript):
            return "item", self._parse_constant(node.slice)
        return ("type", None) if getattr(node.func, "id", "") == "type" else None

    def _parse_constant(self, node):
        import ast

        try:
            return ast.literal_eval(node)
        except ValueError:
            raise Refused("is no source: %s; its keys are constants" % self.text) from None

    def can_be_read_in(self, code):
        """Does CODE have the variable with which this source begins, as an argument, a free
        variable or a global?"""
        if self.scope == "G":
            return self.name in code.co_names
        count = (
            code.co_argcount
            + code.co_kwonlyargcount
            + bool(code.co_flags & 4)
            + bool(code.co_flags & 8)
        )
        return self.name in code.co_varnames[:count] or self.name in code.co_freevars

    def read_values(self, call, last=None):
        """Return a list of the values on the way to the source's value: the variable's value, then
        the value after each of the steps[:last]. Raises one of NO_VALUE if a value does not
        exist."""
        value = call.globals[self.name] if self.scope == "G" else call.get_variable(self.name)
        found = [value]
        for kind, key in self.steps[:last]:
            value = (
                getattr(value, key)
                if kind == "attribute"
                else value[key] if kind == "item" else type(value)
            )
            found.append(value)
        return found

    def assign(self, call, values, value):
        """Assign VALUE to the source. VALUES is the result of read_values(). If a step leads into a
        tuple, the tuple is replaced by a changed copy."""
        for at in range(len(self.steps) - 1, -1, -1):
            kind, key = self.steps[at]
            holder = values[at]
            if kind == "attribute":
                return setattr(holder, key, value)
            if not isinstance(holder, tuple):
                holder[key] = value
                return None
            items = list(holder)
            items[key] = value
            value = type(holder)(items) if type(holder) is tuple else type(holder)._make(items)
        if self.scope == "G":
            call.globals[self.name] = value
        else:
            call.set_variable(self.name, value)
        return None


class Call:
    """A call that is about to begin. `changed` has the arguments that settings have changed."""

    def __init__(self, locals, globals, function):
        self.locals, self.globals, self.function, self.changed = locals, globals, function, {}

    def get_variable(self, name):
        return self.locals[name]

    def set_variable(self, name, value):
        free = self.function.__code__.co_freevars
        if name in free:
            self.function.__closure__[free.index(name)].cell_contents = value
        else:
            self.locals[name] = self.changed[name] = value


# ---- the settings, a class for each kind ----


class Setting:
    """A setting NAME=VALUE for FUNCTION (None: for all functions). Subclasses implement the effect.

    used    the setting has taken effect, and a fact says so
    over    the setting was refused, and a fact says why
    """

    def __init__(self, number, text, name, value, function):
        self.number, self.text, self.name, self.value, self.function = (
            number,
            text,
            name,
            value,
            function,
        )
        self.over = self.used = False
        self.parse_value(value)

    def parse_value(self, value):
        """Parse VALUE, the text that the user gave. Raises Refused."""

    def check(self, sources):
        """Raise Refused if the torch with the source files SOURCES does not support this
        setting."""

    def note_used(self):
        if not self.used:
            self.used = True
            _record_setting_state(self.number, "")

    def refuse(self, why):
        if not self.over:
            self.over = True
            _record_setting_state(self.number, why)

    def applies_to(self, code):
        return not self.over and (self.function is None or is_name_of_code(self.function, code))


class CompileArgument(Setting):
    """A setting of an argument of torch.compile()."""

    def parse_value(self, value):
        if self.name == "dynamic":
            self.value = _read_one_of(value, "True", "False", "None")
        elif self.name in ("fullgraph", "isolate_recompiles"):
            self.value = _read_one_of(value, "True", "False")
        elif not value:
            raise Refused("has no value")

    def check(self, sources):
        known = sources.list_parameters("__init__.py", "compile")
        if known and self.name not in known:
            raise Refused("torch.compile() of %s has no %s" % (sources.version, self.name))
        if self.name == "mode":
            modes = sources.list_modes()
            if modes and self.value not in modes:
                raise Refused(
                    "%s has no such mode: %s" % (sources.version, ", ".join(sorted(modes)))
                )

    def check_backend(self, sources):
        """Raise Refused if torch knows no backend of this name. This is not checked before the
        program runs, because the program may register backends."""
        names = sources.list_backends()
        registry = sys.modules.get("torch._dynamo.backends.registry")
        for known in "_BACKENDS", "_COMPILER_FNS":
            names.update(getattr(registry, known, ()))
        if self.value not in names:
            raise Refused(
                "%s has no such backend: %s" % (sources.version, ", ".join(sorted(names)))
            )

    def apply(self, locals):
        """Return the changed arguments for a call of torch.compile(), whose arguments are
        LOCALS."""
        if (
            self.over
            or self.function is not None
            and not is_name_of_model(self.function, locals.get("model"))
        ):
            return {}
        if self.name not in locals:
            self.refuse("torch.compile() of this torch has no %s" % self.name)
            return {}
        self.check(_get_torch_sources())
        if self.name == "backend":
            self.check_backend(_get_torch_sources())
        self.note_used()
        changed = {self.name: self.value}
        # torch.compile() accepts only one of the arguments mode and options
        if self.name == "mode" and locals.get("options") is not None:
            changed["options"] = None
        return changed


class Stance(Setting):
    """A setting of torch's stance. The stance is set when torch's compiler has been loaded; with
    @FUNC it is set only during calls of the function FUNC."""

    def check(self, sources):
        text = sources.read_text("_dynamo/eval_frame.py")
        if text and 'stance == "%s"' % self.value not in text:
            import re

            names = sorted(set(re.findall(r'stance == "(\w+)"', text)))
            raise Refused(
                "%s has no such stance: %s" % (sources.version, ", ".join(names) or "it has none")
            )

    def set(self):
        """Set the stance. Returns a function that restores the old stance."""
        eval_frame = sys.modules["torch._dynamo.eval_frame"]
        before = eval_frame._stance
        sys.modules["torch.compiler"].set_stance(self.value)
        self.note_used()
        return lambda: eval_frame._set_stance(before)


class SkipGuards(Setting):
    """Turns on the stance skip_guard_eval_unsafe after a number of calls of compiled functions."""

    calls = 0

    def parse_value(self, value):
        if value in _LITERALS:
            raise Refused(
                "is after how many calls it begins, by which all must be compiled: %s=10"
                % self.name
            )
        self.value = _read_count(value, 1)

    def check(self, sources):
        if sources.read_text("compiler/__init__.py") and self.name not in sources.read_text(
            "compiler/__init__.py"
        ):
            raise Refused("%s has no skip_guard_eval_unsafe" % sources.version)

    def set(self):
        self.calls += 1
        if self.calls <= self.value:
            return None
        eval_frame = sys.modules["torch._dynamo.eval_frame"]
        before = eval_frame._stance
        if not before.skip_guard_eval_unsafe:
            sys.modules["torch.compiler"].set_stance(
                before.stance, skip_guard_eval_unsafe=True, force_backend=before.backend
            )
        self.note_used()
        return None if self.function is None else lambda: eval_frame._set_stance(before)


class Config(Setting):
    """A setting of a name in one of torch's config modules. The value is forced in the same way as
    torch's environment variables force it."""

    def parse_value(self, value):
        self.key = self.name[len("config.") :] if self.name.startswith("config.") else self.name
        self.entry = self.module = None
        for module in _CONFIGS:
            if self.key.startswith(module + "."):
                self.module, self.key = module, self.key[len(module) + 1 :]

    def find_declaration(self, sources):
        """Return the config module that declares the name, and (annotation, default, alias) of the
        declaration. The module is None if only the traced process can tell."""
        found = {}
        for module in [self.module] if self.module else _CONFIGS:
            names = sources.read_config_names(module)
            if names is None:
                # the sources cannot be read: let the traced process find out whether the name
                # exists
                return None, ("", None, None)
            target = names.get(self.key, ("", None, None))[2] or "%s.%s" % (module, self.key)
            if self.key in names and (target not in found or found[target][1][2]):
                found[target] = module, names[self.key]
            elif "%s.*" % self.key.rpartition(".")[0] in names:
                # the class may inherit the name: let the traced process find out
                return None, ("", None, None)
        if not found:
            import difflib

            modules = [sources.read_config_names(module) or () for module in _CONFIGS]
            every = sorted({name for names in modules for name in names})
            near = difflib.get_close_matches(self.key, every, 3, 0.75)
            raise Refused(
                "%s has no config %s%s"
                % (sources.version, self.key, "; near: " + ", ".join(near) if near else "")
            )
        if len(found) > 1:
            raise Refused(
                "is in %s: write config.%s"
                % (" and ".join(sorted(one[0] for one in found.values())), sorted(found)[0])
            )
        return next(iter(found.values()))

    def check(self, sources):
        _, (annotation, default, alias) = self.find_declaration(sources)
        if not alias:
            convert_config_value(self.value, annotation, default)

    def find_entry(self):
        """Return the module, the key and the entry that hold the config, and the value converted
        for it."""
        import importlib

        module, _ = self.find_declaration(_get_torch_sources())
        names = [module] if module else [self.module] if self.module else _CONFIGS
        key = self.key
        for name in names:
            module = importlib.import_module(name)
            entry = getattr(module, "_config", {}).get(key)
            if entry is not None:
                break
        else:
            raise Refused("no config of this torch is called %s" % self.key)
        while getattr(entry, "alias", None):
            name, _, key = entry.alias.rpartition(".")
            module = importlib.import_module(name)
            entry = module._config[key]
        kind = getattr(entry, "value_type", None)
        annotation = (
            getattr(kind, "__name__", "")
            if isinstance(kind, type) and not getattr(kind, "__args__", None)
            else str(kind or "")
        )
        default = getattr(entry, "default", None)
        return (
            module,
            key,
            entry,
            convert_config_value(
                self.value, "" if annotation == "NoneType" else annotation, default
            ),
        )

    def force(self):
        """Force the value. Returns a function that restores the old value."""
        if self.entry is None:
            self.entry = self.find_entry()
        return _force_config(*self.entry)


def _force_config(module, key, entry, value):
    """Force the config name KEY of MODULE to VALUE, in all threads. ENTRY is torch's record of the
    name. Returns a function that restores the old value."""
    before = getattr(module, key)
    # setting the value makes torch drop its cached hash of the config values
    setattr(module, key, value)
    if not hasattr(entry, "env_value_force"):
        return lambda: setattr(module, key, before)
    forced, entry.env_value_force = entry.env_value_force, value

    def undo():
        entry.env_value_force = forced
        setattr(module, key, before)

    return undo


class OfValue(Setting):
    """A setting that changes a value of the program. The user gives the value as a source, e.g.
    L['x'], which is read in calls of a function."""

    def parse_value(self, value):
        self.source = Source(value)

    def can_be_read_in(self, code):
        """Can a call of CODE reach the value? If the value is a global and the user named a
        function (@FUNC), assume that it can, because a function that CODE calls may use the
        global."""
        named = self.source.scope == "G" and self.function is not None
        return named or self.source.can_be_read_in(code)


class Mark(OfValue):
    """Marks a dimension of a tensor argument by mark_dynamic() or a similar function.

    Torch raises an error if a marked size must be a constant. It raises no error if the size is
    only in one of torch's lists of sources (dynamic_sources). So tensors are marked. Numbers and
    numpy's arrays cannot be marked, so their sources are put into the lists.
    """

    LIST = {
        "mark_dynamic": "dynamic_sources",
        "maybe_mark_dynamic": "dynamic_sources",
        "mark_unbacked": "unbacked_sources",
        "mark_static": "static_sources",
    }
    ATTRIBUTE = {
        "mark_dynamic": "_dynamo_dynamic_indices",
        "maybe_mark_dynamic": "_dynamo_weak_dynamic_indices",
        "mark_unbacked": "_dynamo_unbacked_indices",
        "mark_static": "_dynamo_static_indices",
    }

    def check(self, sources):
        if not sources.has_function("_dynamo/decorators.py", self.name):
            raise Refused("%s has no torch._dynamo.%s" % (sources.version, self.name))

    listed = False

    def apply(self, call):
        tensor, dimensions = self.find_tensor(call)
        if tensor is None and not self.listed:
            self.add_to_torch_list(call)
        done = getattr(tensor, self.ATTRIBUTE[self.name], ())
        for dimension in dimensions:
            if dimension not in done:
                getattr(sys.modules["torch._dynamo.decorators"], self.name)(tensor, dimension)
            self.note_used()

    def find_tensor(self, call):
        """Return the tensor and the dimensions to mark. If the source is a single size of a tensor,
        such as L['x'].shape[1], mark only this dimension."""
        tensor = sys.modules["torch"].Tensor
        try:
            value = self.source.read_values(call)[-1]
        except NO_VALUE:
            value = None
        outer = self.source.read_values(call, -1)[-1] if self.source.steps else None
        if isinstance(outer, tensor):
            kind, at = self.source.steps[-1]
            dimension = at + outer.dim() if kind == "item" and type(at) is int and at < 0 else at
            return outer, [dimension] if kind == "item" and dimension in range(outer.dim()) else []
        return (value, range(value.dim())) if isinstance(value, tensor) else (None, [])

    def add_to_torch_list(self, call):
        """If the source's value is a number, or one size of a numpy array, add the source to
        torch's list of dynamic (unbacked, static) sources."""
        values = self.source.read_values(call)
        if type(values[-1]) in (int, float):
            entry = str(self.source)
        elif (
            len(values) > 1
            and type(values[-2]).__name__ == "ndarray"
            and self.source.steps[-1][0] == "item"
        ):
            entry = "___from_numpy(%s):%s" % (
                self.source.write_without_last_step(),
                self.source.steps[-1][1],
            )
        else:
            return
        config = sys.modules["torch.compiler.config"]
        name = self.LIST[self.name]
        if (
            not hasattr(config, name)
            or ":" in entry
            and not hasattr(sys.modules["torch._dynamo.variables.builder"], "_parse_source_entry")
        ):
            raise Refused("this torch has no %s, by which what is no tensor is marked" % name)
        if self.function is not None:
            raise Refused(
                "%s is no tensor, and torch's %s is for all functions: leave out @%s"
                % (self.source, name, self.function)
            )
        _force_config(
            config,
            name,
            config._config[name],
            ",".join(filter(None, (getattr(config, name), entry))),
        )
        self.listed = True
        self.note_used()


class Tensor(OfValue):
    """Replaces a number that is an argument or a global by a tensor without dimensions, before
    torch sees the call."""

    def apply(self, call):
        values = self.source.read_values(call)
        number = values[-1]
        if isinstance(number, bool) or not (
            isinstance(number, (int, float, complex)) or _is_numpy_number(number)
        ):
            return
        self.source.assign(call, values, sys.modules["torch"].tensor(number))
        self.note_used()


def _is_numpy_number(value):
    generic = getattr(sys.modules.get("numpy"), "number", None)
    return generic is not None and isinstance(value, generic)


class GuardFilter(Setting):
    """Passes all guards of a compile to one of torch.compiler's functions for guard_filter_fn."""

    def parse_value(self, value):
        if not value.isidentifier():
            raise Refused(
                "is the name of a function of torch.compiler, such as skip_guard_on_globals_unsafe"
            )

    def check(self, sources):
        _check_filters(sources)
        text = sources.read_text("compiler/__init__.py")
        if text and not sources.has_function("compiler/__init__.py", self.value):
            import re

            names = sorted(re.findall(r"^def ((?:skip|keep)_\w+_unsafe)\(", text, re.M))
            raise Refused(
                "torch.compiler of %s has no %s: %s"
                % (sources.version, self.value, ", ".join(names) or "it has none of its kind")
            )

    def choose_guards(self, entries):
        kept = [bool(one) for one in getattr(sys.modules["torch.compiler"], self.value)(entries)]
        self.note_used()
        return kept


class DropGuard(Setting):
    """Leaves out the guards of one kind on one source. This is unsafe: if the value of the source
    changes, torch runs code that was compiled for the old value."""

    def parse_value(self, value):
        self.kind, _, source = value.partition(" ")
        self.source = source.strip().replace('"', "'")
        if not self.kind:
            raise Refused("is a kind of guard and its source: \"drop_guard=TENSOR_MATCH L['x']\"")

    def check(self, sources):
        _check_filters(sources)

    def choose_guards(self, entries):
        kept = [not self.drops_guard(entry) for entry in entries]
        if not all(kept):
            self.note_used()
        return kept

    def drops_guard(self, entry):
        kinds = (entry.guard_type, *(entry.derived_guard_types or ()))
        # a guard may have two names, for example x and L['x']
        names = (entry.name, getattr(entry.orig_guard, "name", ""))
        return self.kind in kinds and self.source in [str(one).replace('"', "'") for one in names]


def _check_filters(sources):
    known = sources.list_parameters("_dynamo/eval_frame.py", "_optimize")
    if known and "guard_filter_fn" not in known:
        raise Refused("%s has no guard_filter_fn" % sources.version)


class Limit(Setting):
    """A setting of a limit of dyntrace's own evaluator, for calls under a compiler other than
    torch."""

    def parse_value(self, value):
        self.value = _read_count(value, 0)


class Trial(Setting):
    """A setting that `dyntrace try` uses internally: count the calls of one function, and keep or
    compare their return values. VALUE ends in a space and the function's qualified name. FUNCTION
    is the FILE:LINE of the function."""

    def parse_value(self, value):
        self.value, _, self.qualname = value.rpartition(" ")

    def applies_to(self, code):
        return code.co_qualname == self.qualname and super().applies_to(code)

    def configure_watch(self, watch):
        if self.name == "try.calls":
            watch.calls = int(self.value)
        elif self.name == "try.values":
            watch.values = self.value
        else:
            watch.against, watch.rtol = self.value, float(self.qualname)


_TRIAL = dict.fromkeys(("try.calls", "try.values", "try.against"), Trial)
_KINDS = {
    **dict.fromkeys(
        ("dynamic", "fullgraph", "backend", "mode", "isolate_recompiles"), CompileArgument
    ),
    "stance": Stance,
    "config": Config,
    **dict.fromkeys(Mark.ATTRIBUTE, Mark),
    "tensor": Tensor,
    "guard_filter_fn": GuardFilter,
    "drop_guard": DropGuard,
    "skip_guard_eval_unsafe": SkipGuards,
    **dict.fromkeys(("use_recursive_dict_tags_for_guards", "install_free_tensors"), Config),
    **dict.fromkeys(("limit", "accumulated_limit"), Limit),
}


def parse(number, text):
    """Parse TEXT and return its Setting. Raises Refused."""
    import re

    name, equals, value = text.partition("=")
    if not equals or not value:
        raise Refused("has no value: it is NAME=VALUE")
    kind = Config if name.startswith("config.") else _KINDS.get(name) or _TRIAL.get(name)
    if kind is None or name == "config":
        raise Refused(
            "there is no such setting: %s"
            % ", ".join("config.NAME" if one == "config" else one for one in _KINDS)
        )
    found = re.fullmatch(r"(.+)@([\w.<>]+|[^@]+:\d+)", value)
    value, function = found.groups() if found else (value, None)
    return kind(number, text, name, value, function)


def refused(texts, own):
    """Yield (number, reason) for each impossible setting. OWN: this interpreter will run the
    program, so the settings are also checked against its torch."""
    sources = _find_torch() if own else None
    for number, text in enumerate(texts):
        try:
            setting = parse(number, text)
            if sources is not None:
                setting.check(sources)
        except Refused as error:
            yield number, error
        # let the traced process find out: torch's sources have an unexpected form
        except Exception:
            pass


def _find_torch():
    import importlib.util
    import os

    try:
        spec = importlib.util.find_spec("torch")
    except Exception:  # the import finder of another package may raise
        return None
    folder = next(iter(spec.submodule_search_locations or ()), None) if spec else None
    return Sources(folder) if folder and os.path.exists("%s/_dynamo/config.py" % folder) else None


# ---- what runs in the traced process ----

_settings = []
_known = None  # the Sources of the imported torch, or None


def begin(texts):
    """Read the session's settings. Called once, before the program runs."""
    for number, text in enumerate(texts):
        try:
            _settings.append(parse(number, text))
        except Refused as error:
            _record_setting_state(number, str(error))
    # never report a setting of `dyntrace try` as unused: its function may never be called
    for setting in _active_settings(Trial):
        setting.note_used()
    _install_plans()


def _install_plans():
    """Tell the extension to call plan() and limits(), each only as long as a setting needs this."""
    need = any(_needs_plan(one) for one in _settings)
    import _dyntrace

    _dyntrace._set_plans(plan if need else None, limits if _active_settings(Limit) else None)


def _needs_plan(setting):
    """Does SETTING still need the extension to call plan()? A Config or Stance for all functions
    needs it only until torch's compiler is loaded, where it takes effect once."""
    if isinstance(setting, Limit) or setting.over:
        return False
    once = isinstance(setting, (Config, Stance)) and setting.function is None
    return not (once and "torch._dynamo" in sys.modules)


def _active_settings(*kinds):
    return [one for one in _settings if isinstance(one, kinds) and not one.over]


def _get_torch_sources():
    global _known
    if _known is None:
        import os

        _known = Sources(os.path.dirname(sys.modules["torch"].__file__))
    return _known


def _record_setting_state(number, why):
    import _dyntrace

    _dyntrace._note(
        "SETTING", (number,), (why[:300].replace("\n", " ").encode("utf-8", "backslashreplace"),)
    )


def _apply_each(settings, act):
    """Call ACT for each of SETTINGS, and return the results. If ACT raises for a setting, that
    setting is refused."""
    results = []
    for setting in settings:
        try:
            results.append(act(setting))
        except Refused as error:
            setting.refuse(str(error))
        except Exception as error:
            setting.refuse("%s: %s" % (type(error).__name__, error))
    return results


def limits(code):
    """Return (limit, accumulated_limit) for CODE under a compiler other than torch. -1 means that
    the default limit stays."""
    found = {"limit": -1, "accumulated_limit": -1}
    file = code.co_filename
    # dyntrace's own functions, such as the canary, have no limits
    ours = file == "<dyntrace>" or file.startswith(__file__[: -len("_settings.py")])
    for setting in [] if ours else _active_settings(Limit):
        if setting.applies_to(code):
            found[setting.name] = setting.value
            setting.note_used()
    return found["limit"], found["accumulated_limit"]


def plan(code):
    """Return what to do in calls of CODE: (when, act), (when, act, watch) or None for nothing.
    src/tracer/torch/bridge.c describes `when` and act().

    watch() is called before each call, even if torch skips the call. It returns None or a callable,
    which is called when the call ends: with the return value, or without argument if the call
    raised.
    """
    file, name = code.co_filename, code.co_qualname
    if name == "<module>":
        return (
            (ALWAYS, _on_compiler_loading) if file.endswith("/torch/_dynamo/__init__.py") else None
        )
    if file.endswith("/torch/__init__.py"):
        return (
            (ALWAYS, _change_compile_arguments)
            if name == "compile"
            and "fullgraph" in code.co_varnames
            and _active_settings(CompileArgument)
            else None
        )
    if file.endswith("/torch/_dynamo/eval_frame.py"):
        if name == "_optimize" and _active_settings(GuardFilter, DropGuard):
            return ALWAYS, _add_guard_filter
        wrapper = (
            name.startswith("_TorchDynamoContext.__call__.<locals>.") and "fn" in code.co_freevars
        )
        stances = _active_settings(SkipGuards) + [
            one for one in _active_settings(Stance) if one.function is not None
        ]
        return (ALWAYS, _set_stances_for_call) if wrapper and stances else None
    if file.endswith("/torch/_dynamo/convert_frame.py"):
        scoped = [one for one in _active_settings(Config) if one.function is not None]
        return (ALWAYS, _force_configs_for_compile) if name == "_compile" and scoped else None
    wanted = [
        one
        for one in _active_settings(Mark, Tensor)
        if one.applies_to(code) and one.can_be_read_in(code)
    ]
    change = _Arguments(code, wanted).change if wanted else _change_nothing
    if any(one.applies_to(code) for one in _active_settings(Trial) if one.function is not None):
        return LOOKED_AT, change, _get_trial_watch()
    return (LOOKED_AT, change) if wanted else None


def _change_nothing(locals, globals, function):
    return None


_trial_watch = None


def _get_trial_watch():
    """Return the watch function for the function that `dyntrace try` examines. All code objects of
    this function share it."""
    global _trial_watch
    if _trial_watch is None:
        from . import _trial

        _trial_watch = _trial.Watch()
        for setting in _active_settings(Trial):
            setting.configure_watch(_trial_watch)
    return _trial_watch


class _Arguments:
    """Applies the settings that change arguments to the calls of CODE."""

    def __init__(self, code, settings):
        self.code, self.settings, self.known = code, settings, False

    def change(self, locals, globals, function):
        if not self.known:
            self.known = True
            # apply only settings with @FUNC to a function that torch skips
            if _torch_skips(self.code):
                self.settings = [one for one in self.settings if one.function is not None]
        call = Call(locals, globals, function)
        _apply_each(
            [one for one in self.settings if not one.over],
            lambda setting: self.apply(setting, call),
        )
        return call.changed or None

    @staticmethod
    def apply(setting, call):
        try:
            setting.apply(call)
        except NO_VALUE:  # the value does not exist in this call
            pass


def _torch_skips(code):
    """Does torch skip CODE by its trace rules (skip files), without analysing its instructions?"""
    try:
        return bool(sys.modules["torch._dynamo.trace_rules"].check(code))
    except Exception:
        return False


def _on_compiler_loading(locals, globals, function):
    """Called when the module code of torch._dynamo is about to run. Returns the function to call
    afterwards."""
    _apply_each(_settings, lambda setting: setting.check(_get_torch_sources()))
    return _on_compiler_loaded


def _on_compiler_loaded():
    _apply_each([one for one in _active_settings(Config) if one.function is None], _force_and_note)
    _apply_each([one for one in _active_settings(Stance) if one.function is None], Stance.set)
    _install_plans()


def _force_and_note(setting):
    setting.force()
    setting.note_used()


def _change_compile_arguments(locals, globals, function):
    changed = {}
    for one in _apply_each(
        _active_settings(CompileArgument), lambda setting: setting.apply({**locals, **changed})
    ):
        changed.update(one)
    return changed or None


def _set_stances_for_call(locals, globals, function):
    """Called for each call of a function that torch.compile() has returned. Sets stances. Returns a
    function that restores the old stances, or None."""
    model = function.__closure__[function.__code__.co_freevars.index("fn")].cell_contents
    wanted = [
        one for one in _active_settings(Stance) if one.function is not None
    ] + _active_settings(SkipGuards)
    wanted = [
        one for one in wanted if one.function is None or is_name_of_model(one.function, model)
    ]
    undo = [one for one in _apply_each(wanted, lambda setting: setting.set()) if one is not None]
    return _make_undo(undo) if undo else None


def _force_configs_for_compile(locals, globals, function):
    """Called when torch begins to compile a frame. Forces configs. Returns a function that restores
    the old values, or None."""
    undo = []
    for setting in _active_settings(Config):
        if setting.function is not None and is_name_of_code(setting.function, locals["code"]):
            undo += _apply_each([setting], Config.force)
            setting.over or setting.note_used()
    return _make_undo(undo) if undo else None


def _make_undo(undo):
    def undo_all():
        for one in reversed(undo):
            one()

    return undo_all


def _add_guard_filter(locals, globals, function):
    """Called for each call of torch._dynamo's _optimize(), also when torch.compile() makes it. Adds
    our guard filter to the arguments."""
    if "guard_filter_fn" not in locals:
        for setting in _active_settings(GuardFilter, DropGuard):
            setting.refuse("this torch has no guard_filter_fn")
        return None
    theirs = locals["guard_filter_fn"]

    def filter_guards(entries):
        import _dyntrace

        kept = [True] * len(entries) if theirs is None else [bool(one) for one in theirs(entries)]
        compiling = _dyntrace._compiling()
        for setting in _active_settings(GuardFilter, DropGuard):
            if setting.function is None or compiling and setting.applies_to(compiling[1]):
                for more in _apply_each([setting], lambda setting: setting.choose_guards(entries)):
                    kept = [one and other for one, other in zip(kept, more)]
        return kept

    return {"guard_filter_fn": filter_guards}
