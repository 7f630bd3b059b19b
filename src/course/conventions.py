"""From other conventions to this course's: masks, packed projections, the order of sines and cosines.

`chapters/conventions.md` explains each, with what needs no function because one call of NumPy does it.
All functions take what NumPy makes an array of and return new arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Additive masks write "forbidden" as -inf, as the lowest number of the dtype (float16: -65504) or as -10000.
LARGEST_FORBIDDEN = -1e4


def mask_from_padding(padding: ArrayLike) -> NDArray[np.bool_]:
    """A key padding mask (B, Tk), True where a token is padding, as our mask (B, 1, 1, Tk), True = may attend.

    The two axes in the middle stand for heads and queries; without heads take `[:, 0]`, which is (B, 1, Tk).
    Raises TypeError for anything but booleans and ValueError for another number of axes.

    >>> mask_from_padding([[False, False, True]])
    array([[[[ True,  True, False]]]])
    """
    array = np.asarray(padding)
    if array.dtype != np.bool_:
        raise TypeError(
            f"a padding mask holds booleans, True where a token is padding, got {array.dtype}: "
            "for ones and zeros use mask_from_integers"
        )
    return ~_for_every_query(array)


def mask_from_integers(attention_mask: ArrayLike) -> NDArray[np.bool_]:
    """A mask (B, Tk) of 1 for a token and 0 for padding, as our mask (B, 1, 1, Tk), True = may attend.

    Raises TypeError for anything but integers, ValueError for other values or another number of axes.

    >>> mask_from_integers([[1, 1, 0]])
    array([[[[ True,  True, False]]]])
    """
    array = np.asarray(attention_mask)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"ones and zeros are integers, got {array.dtype}: booleans where True means padding go to "
            "mask_from_padding, an additive mask of 0 and -inf to mask_from_additive"
        )
    other = array[(array != 0) & (array != 1)]
    if other.size:
        raise ValueError(f"this mask holds 1 for a token and 0 for padding, got {other[0]}: are these token ids?")
    return _for_every_query(array == 1)


def mask_from_additive(bias: ArrayLike) -> NDArray[np.bool_]:
    """A mask that is added to the scores, 0 or a very negative number, as booleans of its shape, True = may attend.

    Very negative is -10000 or less, -inf included. Raises TypeError for anything but floats and ValueError for other
    values: a bias that only weakens some scores is no mask.

    >>> mask_from_additive([[0.0, -np.inf], [0.0, 0.0]])
    array([[ True, False],
           [ True,  True]])
    """
    array = np.asarray(bias)
    if array.dtype.kind != "f":
        raise TypeError(
            f"an additive mask holds floats, 0 and -inf, got {array.dtype}: ones and zeros go to mask_from_integers"
        )
    allowed = array == 0.0
    other = array[~allowed & ~(array <= LARGEST_FORBIDDEN)]
    if other.size:
        raise ValueError(
            f"an additive mask holds 0 and numbers of at most {LARGEST_FORBIDDEN:g}, got {other[0]:g}: "
            "add such a bias to the scores instead"
        )
    return allowed


def split_projections(packed: ArrayLike, heads: int | None = None) -> tuple[NDArray, NDArray, NDArray]:
    """The parts for query, key and value, each (..., C), of a weight (C, 3C) or bias (3C,) that holds all three.

    The columns are all of the query, all of the key, all of the value; with `heads` they are the query, key and value
    of the first head, then those of the next. A weight of PyTorch, (3C, C), is transposed first: `weight.T`.
    Raises ValueError when the last axis does not divide into the parts.

    >>> split_projections([1, 2, 3, 4, 5, 6])
    (array([1, 2]), array([3, 4]), array([5, 6]))
    >>> split_projections([1, 2, 3, 4, 5, 6], heads=2)
    (array([1, 4]), array([2, 5]), array([3, 6]))
    """
    array = np.asarray(packed)
    groups = 1 if heads is None else heads
    if array.ndim == 0 or groups < 1 or array.shape[-1] % (3 * groups):
        raise ValueError(
            f"the last axis of shape {array.shape} does not divide into 3 parts for each of {groups} heads: "
            "a weight of PyTorch is transposed first, weight.T"
        )
    parts = array.reshape(*array.shape[:-1], groups, 3, -1)  # (..., heads, 3, D)
    shape = (*array.shape[:-1], array.shape[-1] // 3)
    query, key, value = (parts[..., index, :].reshape(shape) for index in range(3))  # each (..., C)
    return query, key, value


def halves_from_pairs(x: ArrayLike) -> NDArray:
    """Channels 0, 2, 4, ... and then 1, 3, 5, ...: from neighbouring pairs to two halves, (..., C) to (..., C).

    Turns our sines and cosines, which alternate, into all sines before all cosines. Raises ValueError for an odd C.

    >>> halves_from_pairs([1, -1, 2, -2, 3, -3])
    array([ 1,  2,  3, -1, -2, -3])
    """
    array = _even(x)
    return np.concatenate([array[..., 0::2], array[..., 1::2]], axis=-1)


def pairs_from_halves(x: ArrayLike) -> NDArray:
    """The inverse of `halves_from_pairs`: channel i of the first half, then channel i of the second.

    >>> pairs_from_halves([1, 2, 3, -1, -2, -3])
    array([ 1, -1,  2, -2,  3, -3])
    """
    array = _even(x)
    return np.stack(np.split(array, 2, axis=-1), axis=-1).reshape(array.shape)


def _for_every_query(mask: NDArray) -> NDArray:
    if mask.ndim != 2:
        raise ValueError(f"a mask of tokens has shape (B, Tk), got {mask.shape}: give one row a sequence")
    return mask[:, None, None, :]  # (B, 1, 1, Tk)


def _even(x: ArrayLike) -> NDArray:
    array = np.asarray(x)
    if array.ndim == 0 or array.shape[-1] % 2:
        raise ValueError(f"pairs and halves need an even number of channels in the last axis, got shape {array.shape}")
    return array
