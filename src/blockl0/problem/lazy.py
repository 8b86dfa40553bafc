"""Values of an object that are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """`functools.cached_property` without its lock, which up to Python 3.11 is one for all objects.

    Searches that run side by side wait for each other while such a value is made.
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
        """The value, kept in the object."""
        if obj is None:
            return self
        value = obj.__dict__[self._name] = self._make(obj)
        return value
