"""Lazily computed attributes: `cached_property` without its class-wide lock."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Generic, Self, TypeVar, cast, overload

import numpy as np

T = TypeVar("T")


class lazy(Generic[T]):
    """`functools.cached_property` without the lock it has up to Python 3.11.

    That lock is shared by all instances of a class, so searches on several threads would wait for
    each other.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, obj: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, obj: object, owner: Any = None) -> T: ...
    def __get__(self, obj: Any, owner: Any = None) -> Any:
        """Return the value, computing it on first access."""
        if obj is None:
            return self
        value = obj.__dict__[self._name] = self._make(obj)
        return value


def late_generator(seed: np.random.Generator | int | None) -> np.random.Generator:
    """Return a generator for the seed, created when the first number is drawn.

    Creating one takes a tenth of the time of a search among few columns, which may never draw. A
    generator is returned as it is.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    return cast(np.random.Generator, _Late(seed))


class _Late:
    """Stand-in for a generator that forwards every attribute to it."""

    def __init__(self, seed: int | None) -> None:
        self._seed = seed

    @lazy
    def _made(self) -> np.random.Generator:
        return np.random.default_rng(self._seed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `copy` and `pickle` look these up on this object
            raise AttributeError(name)
        value = self.__dict__[name] = getattr(self._made, name)
        return value

    def __deepcopy__(self, memo: dict[int, Any]) -> np.random.Generator:
        return deepcopy(self._made, memo)
