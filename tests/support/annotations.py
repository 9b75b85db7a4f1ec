"""Checks of annotations while tests run, made cheap: jaxtyping's decorator where there are shapes, and once."""

import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, get_args

import jaxtyping
import pytest


def has_shapes(hint: Any) -> bool:
    """Whether a type, or a part of it, is an array's with its shape; of one that is still a string nobody knows."""
    if isinstance(hint, str):
        return True
    if isinstance(hint, list):  # the arguments of a Callable
        return any(map(has_shapes, hint))
    return issubclass(hint, jaxtyping.AbstractArray) if isinstance(hint, type) else any(map(has_shapes, get_args(hint)))


def cheaper(jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap jaxtyping's decorator, which its import hook writes above every function of the package.

    It builds and compiles two functions for each function it is given, 5 ms. A function within a function is given to
    it each time that the outer one is called: here, the first time alone. And a function that names no shape needs none
    of jaxtyping's book-keeping, 50 µs a call: there the type checker alone looks.
    """
    seen: set[CodeType] = set()

    def decorate(thing: Any, typechecker: Any) -> Any:
        if not inspect.isfunction(thing):
            return jaxtyped(thing, typechecker=typechecker)
        if "<locals>" in thing.__qualname__:
            if thing.__code__ in seen:
                return thing
            seen.add(thing.__code__)
        if any(map(has_shapes, thing.__annotations__.values())):
            return jaxtyped(thing, typechecker=typechecker)
        checked = typechecker(thing)

        @functools.wraps(thing)
        def unless_disabled(*args: Any, **kwargs: Any) -> Any:
            return (thing if jaxtyping.config.jaxtyping_disable else checked)(*args, **kwargs)

        # no line of the code that calls: `regard.watch` leaves out wrappers of type checkers by this name
        unless_disabled.__code__ = unless_disabled.__code__.replace(co_filename="<@unless_disabled>")
        return unless_disabled

    @functools.wraps(jaxtyped)
    def given(thing: Any = None, **options: Any) -> Any:
        if thing is None and set(options) == {"typechecker"}:
            return functools.partial(decorate, **options)
        return jaxtyped(*(() if thing is None else (thing,)), **options)

    return given


@pytest.fixture
def no_checks_of_annotations() -> Iterator[None]:
    """Calls as a user makes them: without the run-time checks that tests otherwise have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
