"""Generalised least squares on a tree: a pass up, a pass down, in the blocks of ``marginals``.

Each node has its own measurements, of precision K and information h = sum_q Q_q' y_q / s_q^2; its histogram is the sum
of its children's. Let (m_c, C_c) be estimate and covariance of child c from all measurements at and below it. Up:

    m = sum_c m_c,  C = sum_c C_c,
    C_up = C (I + K C)^-1,  m_up = m + C_up (h - K m),

(Hay, Rastogi, Miklau and Suciu 2010 for one count, Kalman's update in general; it needs no inverse of K or C, so that
levels may leave queries out and totals may be exact). Down, from the parent's final estimate x with covariance V:

    G_c = C_c C^-1,  x_c = m_c + G_c (x - m),  V_c = C_c + G_c (V - C) G_c'

(Rauch, Tung and Striebel 1965). The result is the best linear unbiased estimate given all measurements; V is its
covariance, whatever the law of the noise. A total that is known exactly is a measurement without noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.maths.tree import matrices
from discreet.maths.tree.marginals import Basis, Blocks, applied
from discreet.maths.tree.matrices import product, solved

Floats = NDArray[np.floating[Any]]


def combined(children: Blocks, own: Blocks) -> Blocks:
    """C_up = C (I + K C)^-1 = (I + C K)^-1 C."""
    unit = np.eye(children.shape[-1])
    return symmetric(solved(unit + product(children, own), children))


def symmetric(blocks: Blocks) -> Blocks:
    """Remove the rounding that makes a symmetric matrix unsymmetric."""
    found: Blocks = (blocks + np.swapaxes(blocks, -1, -2)) / 2
    return found


def inverse(blocks: Blocks, *, total_known: bool) -> Blocks:
    """The inverse of a covariance; a pseudo-inverse where totals are known, with no variance along them."""
    if not total_known:
        return matrices.inverse(blocks)
    found = np.empty_like(blocks)
    found[1:] = matrices.inverse(blocks[1:])
    d = blocks.shape[-1]
    # along the known direction add any variance, invert, and take the direction out of the result again
    along = np.full((d, d), 1 / d)
    scale = max(float(np.trace(blocks[0])) / max(d - 1, 1), 1e-300)
    found[0] = matrices.inverse(blocks[0] + scale * along) - along / scale
    if d == 1:
        found[0] = 0.0
    return found


def with_known_total(covariance: Blocks) -> tuple[Blocks, Floats]:
    """The covariance given the total, and how a missing total spreads over dense cells: C 1 / (1' C 1)."""
    one = covariance[0].sum(axis=1)
    whole = float(one.sum())
    if whole <= 1e-12 * max(float(np.trace(covariance[0])), 1e-300):  # the total was known already
        d = covariance.shape[-1]
        return covariance, np.full(d, 1 / d)
    found = covariance.copy()
    found[0] -= np.outer(one, one) / whole
    return found, one / whole


def moved_to_total(basis: Basis, x: Floats, total: float | Floats, direction: Floats) -> Floats:
    """x + C 1 (T - 1'x) / (1' C 1) for x of shape (.., d, width)."""
    missing = np.asarray(total - x.sum(axis=(-1, -2)))
    return x + (missing[..., None] * direction)[..., None] / basis.width


def updated(basis: Basis, m: Floats, h: Floats, own: Blocks, up: Blocks) -> Floats:
    """m_up = m + C_up (h - K m)."""
    return m + applied(basis, up, h - applied(basis, own, m))


def smoothed(covariance: Blocks, gain: Blocks, parent: Blocks, children: Blocks) -> Blocks:
    """V_c = C_c + G_c (V - C) G_c'."""
    moved = product(product(gain, parent - children), np.ascontiguousarray(np.swapaxes(gain, -1, -2)))
    return symmetric(covariance + moved)
