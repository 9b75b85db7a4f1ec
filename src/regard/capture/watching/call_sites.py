"""Find the place of an attention call: the path of its module, and the file and line.

The place is read from the Python stack, without hooks. A method's frame identifies the module that is its first
argument. This works with recursion, exceptions, direct calls to `.forward(x)`, and modules in plain lists.

This module also contains all uses of PyTorch's private names for watching, for which there is no public interface.
"""

import ast
import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.nn import functional

functorch = torch._C._functorch


def in_backward_pass() -> bool:
    """Return whether a backward pass is running, in which checkpointing computes calls a second time."""
    return torch._C._current_graph_task_id() != -1


def in_transform() -> bool:
    """Return whether this runs inside vmap, grad or another transform of torch.func."""
    return functorch.peek_interpreter_stack() is not None


@contextmanager
def outside_transforms() -> Iterator[None]:
    """Suspend the transforms of torch.func, so that results can be used after them."""
    if in_transform():
        with temporarily_clear_interpreter_stack():
            yield
    else:
        yield


def without_transforms(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Unwrap tensors from the transforms of torch.func. Axes that vmap maps over come first."""
    plain: list[tuple[Tensor, dict[int, int]]] = []
    levels: set[int] = set()
    for tensor in tensors:
        mapped = {}  # the mapped axis of each level of vmap
        while functorch.is_functorch_wrapped_tensor(tensor):
            if functorch.is_batchedtensor(tensor):
                mapped[functorch.maybe_get_level(tensor)] = functorch.maybe_get_bdim(tensor)
            tensor = functorch.get_unwrapped(tensor)
        plain.append((tensor, mapped))
        levels |= mapped.keys()
    result = []
    for tensor, mapped in plain:
        for n, level in enumerate(sorted(levels)):
            tensor = tensor.movedim(n + mapped[level], n) if level in mapped else tensor.unsqueeze(n)
        result.append(tensor)
    return result


def multi_head_attention_in_steps(attention: Callable[..., Any]) -> Callable[..., Any]:
    """Copy `F.multi_head_attention_forward` so that a function mode sees its inner calls.

    attention: is called instead of `scaled_dot_product_attention`. A mode is disabled while it handles a function, so
    it wouldn't see calls inside the original. The copy runs PyTorch's code with a `has_torch_function` that is always
    false. PyTorch itself isn't changed.
    """
    original: Any = functional.multi_head_attention_forward
    names = {**vars(functional), "has_torch_function": lambda _: False, "scaled_dot_product_attention": attention}
    copy = FunctionType(original.__code__, names, original.__name__, original.__defaults__)
    copy.__kwdefaults__ = original.__kwdefaults__
    return copy


TORCH = torch.__path__[0]
OURS = str(Path(__file__).parent)
ATTENTION = str(Path(__file__).parents[2] / "attention")
MODULE_CALL = nn.Module.__call__.__code__  # its callee `_call_impl` has the same module
CHECKED = "<@"  # start of the file names of run-time type checkers' wrappers
WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


class Site(NamedTuple):
    """The place of a call. path: of its module. where: file:line."""

    path: str
    where: str


class CallSites:
    """Find the sites of calls inside a root module, or of all calls if root is None."""

    def __init__(self, root: nn.Module | None) -> None:
        self.root = root
        self._paths: dict[int, tuple[nn.Module, dict[int, list[str]]]] = {}

    def find(self, *, of_attend: bool = False) -> Site | None:
        """Return the site of the current call. None outside the root and in backward passes.

        of_attend: whether it is a call to `regard.attend`. Calls inside `attend` have no site, as `attend` is recorded.
        """
        if in_backward_pass():
            return None
        modules: list[nn.Module] = []  # innermost first
        line, inside, name = None, False, None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not (inside and line):
            code = frame.f_code
            file = code.co_filename
            if code is MODULE_CALL or file.startswith((OURS, CHECKED)) or (of_attend and file.startswith(ATTENTION)):
                frame = frame.f_back
                continue
            of_torch = file.startswith(TORCH)
            if line is None and not of_torch:
                if file.startswith(ATTENTION):
                    return None
                line = frame
            first = code.co_varnames[0] if code.co_argcount and not inside else ""
            named = first == "self" or (first and not of_torch)
            owner = frame.f_locals.get(first) if named else None  # reading locals is slow
            if isinstance(owner, nn.Module) and hasattr(type(owner), code.co_name):  # a method of it
                if not modules or modules[-1] is not owner:
                    modules.append(owner)
                    inside = owner is self.root
            elif modules and self.root is None and not inside and not of_torch:
                variables = {**frame.f_globals, **frame.f_locals}
                name = next((key for key, value in variables.items() if value is modules[-1]), None)
                inside = name is not None
            frame = frame.f_back
        where = f"{line.f_code.co_filename}:{line.f_lineno}" if line else ""
        if self.root is not None:
            return Site(self._path(modules, "") or type(self.root).__name__, where) if inside else None
        if modules:
            return Site(self._path(modules, name or type(modules[-1]).__name__), where)
        return Site(_name_of_line(line) if line else "?", where)

    def path_of_attend(self) -> str:
        """Return the path of the current call to `regard.attend`."""
        site = self.find(of_attend=True)
        return "" if site is None else site.path

    def _path(self, modules: list[nn.Module], first: str) -> str:
        """Build a path from the modules on the stack. If a module has several names, use the one below its caller."""
        root, path = modules[-1], ""
        if id(root) not in self._paths:
            self._paths[id(root)] = root, paths_in(root)
        names = self._paths[id(root)][1]
        for module in reversed(modules[:-1]):
            if isinstance(module, nn.Softmax):
                continue  # use the enclosing module
            below = [name for name in names.get(id(module), ()) if name.startswith(f"{path}." if path else "")]
            if below:
                path = min(below, key=len)
            elif id(module) not in names:  # for example, in a plain list
                path = f"{path}.{type(module).__name__}"
        return ".".join(part for part in f"{first}.{path}".split(".") if part)


def without_wrappers(module: nn.Module) -> nn.Module:
    """Return the module inside DataParallel, DistributedDataParallel and compiled modules."""
    while True:
        if isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel):
            module = module.module
        elif isinstance(inner := getattr(module, "_orig_mod", None), nn.Module):
            module = inner
        else:
            return module


def paths_in(root: nn.Module) -> dict[int, list[str]]:
    """Return all paths of each module, by module id, without the names that wrappers add."""
    paths: dict[int, list[str]] = {}
    for name, module in root.named_modules(remove_duplicate=False):
        paths.setdefault(id(module), []).append(".".join(part for part in name.split(".") if part not in WRAPPERS))
    return paths


def _name_of_line(frame: FrameType) -> str:
    """Name a line of code outside modules after its function or the variable that it assigns."""
    function = frame.f_code.co_name
    if not function.startswith("<"):
        return function
    try:
        statement = ast.parse(linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()).body[0]
    except (SyntaxError, IndexError):
        statement = None
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return f"line {frame.f_lineno}"
