"""Values by the percentile of another quantity: which bin each is in, and what a bin's values are like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.reporting.stats import Array

Bins = NDArray[np.int8]

QUARTILES = (0.25, 0.5, 0.75)


def percentile_bins(values: Array, bins: int) -> Bins:
    """[n]: the bin of each finite value, from 0 for the lowest of `bins` equal parts of the percentiles.

    The percentile of a value is (its mean rank - 0.5) / n, so equal values share a bin whatever their order.
    """
    return np.searchsorted(_edges(values, bins), values, side="right").astype(np.int8)


def _edges(values: Array, bins: int) -> Array:
    """[bins - 1]: the smallest value that is in bin 1, 2, ... or above; infinite where none is.

    In whole numbers: equal values at places [left, right) have mean rank (left + right + 1) / 2, and so are in bin
    (left + right) * bins // (2 n).
    """
    n, bin_ = values.size, np.arange(1, bins)
    ordered = np.append(values, np.inf)
    ordered.sort()
    # The first place that would be in the bin if it were alone; only the values equal to it can pull it out again.
    first = np.maximum(-((bins - 2 * n * bin_) // (2 * bins)), 0)
    left, right = (np.searchsorted(ordered[:n], ordered[first], side) for side in ("left", "right"))
    inside = (left + right) * bins >= 2 * n * bin_
    return np.asarray(np.where(inside, ordered[first], ordered[right]))


def middles(bins: int) -> Array:
    """[bins]: the percentile in the middle of each bin."""
    return (np.arange(bins) + 0.5) * 100 / bins


def bounds(bins: int) -> list[tuple[str, str]]:
    """The percentiles between which each bin lies, as data files show them."""
    return [(f"{place * 100 / bins:g}", f"{(place + 1) * 100 / bins:g}") for place in range(bins)]


def quantiles(values: Array, bin_of: Bins, bins: int, shares: Sequence[float] = QUARTILES) -> Array:
    """[bins, shares]: quantiles of the values of each bin; NaN for an empty one."""
    found = np.full((bins, len(shares)), np.nan)
    for place in range(bins):
        chosen = values[bin_of == place]
        if chosen.size:
            found[place] = np.quantile(chosen, shares)
    return found


def means(values: Array, bin_of: Bins, bins: int) -> tuple[Array, Array]:
    """([bins], [bins]): mean and standard deviation (ddof 1) of the values of each bin; NaN where there are too few."""
    mean, sd = np.full(bins, np.nan), np.full(bins, np.nan)
    for place in range(bins):
        chosen = values[bin_of == place]
        if chosen.size:
            mean[place] = chosen.mean()
        if chosen.size > 1:
            sd[place] = chosen.std(ddof=1)
    return mean, sd
