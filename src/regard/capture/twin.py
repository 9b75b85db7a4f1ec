"""Copy a model's modules and configs, but not its tensors. Captured passes run on the copy.

A pass adds hooks, settings and methods only to the copy. The model itself doesn't change, so other threads can use it
in the meantime, and several `Model` objects can trace it at the same time.
"""

from collections import OrderedDict
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn

from regard.capture.state import of_transformers

CONFIG = "PreTrainedConfig"  # the class of transformers' configs
PLAIN = frozenset((int, float, bool, str, type(None), set, torch.dtype))  # types that can't contain a module
HOLDING = (nn.Module, MethodType, partial, FunctionType)  # types that may contain a module


class Twin:
    """A copy of a model's modules in evaluation mode, with the same parameters and buffers.

    model: the copy. It stays the same object if modules of the original are replaced.
    """

    def __init__(self, original: nn.Module) -> None:
        self._original = original
        self._copies: dict[int, tuple[Any, Any]] = {}  # id -> (original, kept alive so that its id stays; copy)
        self._fresh: set[int] = set()
        self.refresh()

    def refresh(self) -> None:
        """Update the copied modules to the current attributes of the model's modules."""
        self._fresh.clear()
        self.model = self._copy(self._original)
        self._copies = {key: self._copies[key] for key in self._fresh}  # forgets replaced modules

    def _copy(self, value: Any) -> Any:
        """Copy modules and configs, also in lists and dictionaries. Return other values unchanged."""
        kind = type(value)
        if kind in (dict, OrderedDict):
            return kind([(key, self._copy(item)) for key, item in value.items()]) if value else kind()
        if kind in (list, tuple):
            return kind(map(self._copy, value))
        copied = isinstance(value, nn.Module) or of_transformers(value, CONFIG)
        if not copied or isinstance(value, torch.jit.ScriptModule):
            return value
        copy = self._copies.get(id(value), (None, None))[1]
        if type(copy) is not kind:
            copy = object.__new__(kind)
            self._copies[id(value)] = value, copy
        if id(value) not in self._fresh:
            self._fresh.add(id(value))
            before, state, module = vars(copy), dict(vars(value)), isinstance(value, nn.Module)
            state.pop("_compiled_call_impl", None)  # from model.compile(), which would ignore hooks and modes
            for name, item in state.items():
                item_kind = type(item)
                if item_kind is OrderedDict and not item and type(empty := before.get(name)) is item_kind and not empty:
                    state[name] = empty  # both have no hooks; copying these would take most of the time
                elif item_kind not in PLAIN and (module or of_transformers(item, CONFIG)):
                    state[name] = self._copy(item) if item_kind is dict else self._copy_callable(item)
            if module:
                state["training"] = False
            before.update(state)  # never cleared, because another thread may read an attribute
            for name in before.keys() - state.keys():
                del before[name]
        return copy

    def _copy_callable(self, value: Any) -> Any:
        """Copy like `_copy`, but make methods, functions and callable objects refer to the copied modules."""
        kind = type(value)
        if kind is MethodType:
            return MethodType(self._copy_callable(value.__func__), self._copy_callable(value.__self__))
        calling = kind in (partial, FunctionType)
        if not calling and (
            kind.__new__ is not object.__new__  # type: ignore[comparison-overlap]
            or isinstance(value, nn.Module)
            or of_transformers(value, CONFIG)
            or not any(isinstance(item, HOLDING) for item in getattr(value, "__dict__", {}).values())
        ):
            return self._copy(value)
        if id(value) in self._fresh:
            return self._copies[id(value)][1]
        copy: Any = value
        if not calling:
            before = self._copies.get(id(value), (None, None))[1]
            copy = before if type(before) is kind and before is not value else object.__new__(kind)
        self._fresh.add(id(value))
        self._copies[id(value)] = value, copy  # in case it refers to itself
        if not calling:
            vars(copy).update({name: self._copy_item(item) for name, item in vars(value).items()})
        elif kind is partial:
            named = {name: self._copy_item(item) for name, item in value.keywords.items()}
            copy = partial(self._copy_callable(value.func), *map(self._copy_item, value.args), **named)
        elif value.__closure__ or value.__defaults__ or value.__kwdefaults__:
            cells = tuple(map(self._copy_cell, value.__closure__ or ()))
            defaults = tuple(map(self._copy_item, value.__defaults__ or ()))
            copy = FunctionType(value.__code__, value.__globals__, value.__name__, defaults, cells)
            copy.__kwdefaults__ = {name: self._copy_item(item) for name, item in (value.__kwdefaults__ or {}).items()}
            copy.__dict__ = value.__dict__
        self._copies[id(value)] = value, copy
        return copy

    def _copy_item(self, value: Any) -> Any:
        """Copy like `_copy_callable`, but return lists and dictionaries themselves, because code may write to them."""
        return value if type(value) in (dict, OrderedDict, list, tuple) else self._copy_callable(value)

    def _copy_cell(self, cell: CellType) -> CellType:
        try:
            contents = cell.cell_contents
        except ValueError:  # an empty cell
            return cell
        copy = self._copy_item(contents)
        return cell if copy is contents else CellType(copy)
