"""Which dtype the numbers of a tensor have: float32 or float64 as chosen, int64, bool. Chapter 1 explains why."""

from __future__ import annotations

from typing import Any

import numpy as np


class Precision:
    """The float type of new tensors: set when called, and set in each `with` block, which puts back what was before.

    >>> with Precision(np.float64):
    ...     as_array([1.0]).dtype
    dtype('float64')
    >>> as_array([1.0]).dtype
    dtype('float32')
    """

    current: Any = np.float32

    def __init__(self, dtype: Any):
        if dtype is None or np.dtype(dtype) not in (np.float32, np.float64):  # np.dtype(None) is float64
            raise ValueError(f"precision is np.float32 or np.float64, got {dtype and np.dtype(dtype)}")
        self.dtype = np.dtype(dtype).type
        self.before = [Precision.current]  # what to put back at the end of each block
        self.entered = False
        Precision.current = self.dtype

    def __enter__(self) -> None:
        if self.entered:  # the first block ends what the call began, a later one what it begins itself
            self.before.append(Precision.current)
        self.entered = True
        Precision.current = self.dtype

    def __exit__(self, *_: Any) -> None:
        Precision.current = self.before.pop()


def as_array(data: Any, dtype: Any = None) -> np.ndarray:
    """`data` as an array of the dtype that a tensor stores: the current precision, int64 or bool."""
    if type(data) is np.ndarray and dtype is None and data.dtype == Precision.current:  # the usual case, first
        return data
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"rows of different lengths make no tensor: {error}") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"a tensor holds numbers, got {type(data).__name__} of {array.dtype}: convert it to int or float"
        )
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64, np.int64, np.bool_):
        raise ValueError(f"dtype is float32, float64, int64 or bool, got {np.dtype(dtype)}")
    if dtype is None:
        dtype = {"f": Precision.current, "b": np.bool_}.get(array.dtype.kind, np.int64)
    if np.dtype(dtype) == np.int64 and array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max:
        raise ValueError(f"integers go up to 2**63 - 1 (int64), got {array.max()}: use floats")
    return array.astype(dtype, copy=False)
