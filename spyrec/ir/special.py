"""Exact float64 functions that NumPy lacks."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def softplus(x: Floats, beta: float, threshold: float) -> Floats:
    """Return log(1 + exp(beta x)) / beta, and x itself where beta x > threshold (PyTorch's definition)."""
    scaled = x * beta
    return np.where(scaled > threshold, x, np.logaddexp(0.0, scaled) / beta)


def gelu(x: Floats) -> Floats:
    """Return x times the standard normal distribution function at x, accurate in both tails."""
    return _limit_at_minus_infinity(x, x * 0.5 * _erfc(x * -math.sqrt(0.5)))


def gelu_tanh(x: Floats) -> Floats:
    """Return the tanh approximation of GELU (Hendrycks and Gimpel 2016), as sigmoid to keep the lower tail exact."""
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return _limit_at_minus_infinity(x, x * sigmoid(2.0 * inner))


def silu(x: Floats) -> Floats:
    """Return x sigmoid(x)."""
    return _limit_at_minus_infinity(x, x * sigmoid(x))


def mish(x: Floats) -> Floats:
    """Return x tanh(log(1 + exp(x))); the logarithm is undone: n / (n + 2) with n = exp(x) (exp(x) + 2)."""
    exponential = np.exp(np.minimum(x, 40.0))
    product = exponential * (exponential + 2.0)
    return _limit_at_minus_infinity(x, x * (product / (product + 2.0)))


def _limit_at_minus_infinity(x: Floats, values: Floats) -> Floats:
    # the product is -inf * 0 there; PyTorch's kernels give NaN too for gelu, but the limit is what the functions mean
    return np.where(np.isneginf(x), -0.0, values)
