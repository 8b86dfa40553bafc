"""Progress of a fit through scikit-learn's callbacks, which exist from scikit-learn 1.9 on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from blockl0.run import Progress

Floats = NDArray[np.float64]
Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn import callback as _callback
except ImportError:
    _callback = None

HAS_CALLBACKS = _callback is not None


class _NoCallbacks:
    """Replaces scikit-learn's mixin, which adds `set_callbacks`."""


def _as_it_is(method: Method) -> Method:
    """Replace scikit-learn's decorator, which tears callbacks down after the method."""
    return method


CallbackSupportMixin: Any = getattr(_callback, "CallbackSupportMixin", _NoCallbacks)
with_callbacks: Any = getattr(_callback, "with_callbacks", _as_it_is)


class FitTask:
    """A task of a fit and its data for callback hooks; without callbacks its methods do nothing.

    Parameters
    ----------
    estimator : estimator
    context : sklearn.callback.CallbackContext or None
    **data
        X, y and metadata of the task.
    """

    estimator: Any
    context: Any
    data: dict[str, Any]

    def __init__(self, estimator: Any, context: Any = None, **data: Any) -> None:
        self.estimator, self.context, self.data = estimator, context, data

    @property
    def is_heard(self) -> bool:
        """Whether any callback listens."""
        return self.context is not None and bool(getattr(self.estimator, "_skl_callbacks", None))

    def part(self, name: str, number: int | None = None, **data: Any) -> FitTask:
        """Return a task inside this one, numbered if the parts may run at the same time."""
        if self.context is None:
            return self
        context = self.context.subcontext(task_name=name, task_id=number)
        return FitTask(self.estimator, context, **(self.data | data))

    def begin(self, attributes: Any = None) -> FitTask:
        """Call the hooks; `attributes`, or a function for them, make a copy that can predict."""
        if self.context is not None:
            self.context.call_on_fit_task_begin(
                estimator=self.estimator, reconstruction_attributes=attributes, **self.data
            )
        return self

    def end(self, attributes: Any = None) -> bool:
        """Call the hooks; return whether one of them asks to stop."""
        if self.context is None:
            return False
        return self.context.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=attributes, **self.data
        )

    @contextmanager
    def around(self, sub_estimator: Any) -> Iterator[None]:
        """Enter the task of fitting another estimator, which gets the callbacks that propagate."""
        if self.context is None:
            yield
            return
        with self.context.propagate_callback_context(sub_estimator):
            self.begin()
            yield
            self.end()

    @contextmanager
    def rounds(self, attributes: Callable[[Floats], Any], w: Floats) -> Iterator[Any]:
        """Yield a callback for `Run` that makes a task of every round; None without callbacks.

        `attributes` returns those of a fitted estimator at a point; `w` is the first one.
        """
        if not self.is_heard:
            yield None
            return
        current = self.part("round").begin(lambda: attributes(w))

        def next_round(progress: Progress) -> bool:
            nonlocal current
            made = attributes(progress.coef)
            stop = current.end(made)
            current = self.part("round").begin(made)
            return stop

        yield next_round
        # a round that began but never ran
        current.end()


@contextmanager
def fit_task(
    estimator: Any, X: Any, y: Any, weights: Any, n_parts: int | None = None
) -> Iterator[FitTask]:
    """Yield the task of a whole fit, begun before and ended after the block.

    Its parts are rounds of a search, of unknown number, or `n_parts` numbered ones.
    """
    context = None
    # without callbacks, its own or an outer estimator's, nobody hears of the task
    is_heard = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
    if HAS_CALLBACKS and is_heard:
        context = estimator._init_callback_context(
            max_subtasks=n_parts, sequential_subtasks=n_parts is None
        )
    metadata = None if weights is None else {"sample_weight": weights}
    task = FitTask(estimator, context, X=X, y=y, metadata=metadata)
    task.begin()
    yield task
    task.end({})
