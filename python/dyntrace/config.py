"""Limits of the evaluator. Assign to this module's names:

    dyntrace.config.recompile_limit = 16              valid entries of one code object
    dyntrace.config.accumulated_recompile_limit = 512 entries ever made for one code object

At a limit, a call for which no entry fits runs as plain Python.

Runs in: the traced process.
"""

from __future__ import annotations

import sys
import types

from . import _native

__all__ = ["accumulated_recompile_limit", "recompile_limit"]

recompile_limit: int
accumulated_recompile_limit: int


class _Config(types.ModuleType):
    def __setattr__(self, name, value):
        is_setting = isinstance(getattr(type(self), name, None), property)
        if not is_setting and not name.startswith("__"):
            raise AttributeError(
                "dyntrace.config has no setting %r: recompile_limit, accumulated_recompile_limit"
                % name
            )
        super().__setattr__(name, value)

    def __dir__(self):
        return sorted({*vars(self), *__all__})

    @property
    def recompile_limit(self):
        return _native.native._get_limits()[0]

    @recompile_limit.setter
    def recompile_limit(self, value):
        _native.native._set_limits(value, self.accumulated_recompile_limit)

    @property
    def accumulated_recompile_limit(self):
        return _native.native._get_limits()[1]

    @accumulated_recompile_limit.setter
    def accumulated_recompile_limit(self, value):
        _native.native._set_limits(self.recompile_limit, value)


sys.modules[__name__].__class__ = _Config
