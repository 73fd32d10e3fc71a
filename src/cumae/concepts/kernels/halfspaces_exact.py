"""Geometry of halfspaces in whole numbers and fractions: slow, simple and exact."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from cumae.arrays import Floats, Integers

Vector: TypeAlias = Sequence[Any]
Vectors: TypeAlias = Sequence[Sequence[Any]]


def dot_product(u: Vector, v: Vector) -> Any:
    """Return the sum of the products, exactly."""
    return sum(map(operator.mul, u, v))


def _edge(start: Vector, end: Vector) -> list[Any]:
    return [v - u for u, v in zip(start, end, strict=True)]


def exact_rows(table: Floats) -> tuple[list[list[int]], int]:
    """Return the table as whole numbers, and by which power of two they are too large."""
    ratios = [[value.as_integer_ratio() for value in row] for row in table.tolist()]
    scale = max((below for row in ratios for _, below in row), default=1)
    return [[above * (scale // below) for above, below in row] for row in ratios], scale


def without_fractions(numbers: Vector) -> list[int]:
    """Multiply by a positive number that leaves coprime whole numbers."""
    scale = math.lcm(*(value.denominator for value in numbers))
    whole = [int(value * scale) for value in numbers]
    common = math.gcd(*whole)
    return [value // common for value in whole]


def _cross(u: Vector, v: Vector) -> list[int]:
    """Return u0 v1 - u1 v0, then with columns 0 and 2, then with 1 and 2."""
    return [u[i] * v[j] - u[j] * v[i] for i, j in itertools.combinations(range(len(u)), 2)]


def _det(u: Vector, v: Vector, w: Vector) -> int:
    xy, xz, yz = _cross(v, w)
    return int(u[0] * yz - u[1] * xz + u[2] * xy)


def spanning_columns(points: Floats) -> list[int]:
    """Return the first columns that show the points' line, plane or space without loss."""
    if len(points) < 3 or points.shape[1] == 1:
        return [0]
    rows, _ = exact_rows(points)
    axis = _edge(rows[0], rows[1])
    for k in range(2, len(rows)):
        edge = _edge(rows[0], rows[k])
        views = _cross(axis, edge)
        if any(views):
            break
    else:
        return [0]
    if points.shape[1] == 3:
        for row in rows[k + 1 :]:
            if _det(axis, edge, _edge(rows[0], row)):
                return [0, 1, 2]
    first = next(i for i, view in enumerate(views) if view)
    return [[0, 1], [0, 2], [1, 2]][first]


def reference_labels(points: Floats) -> Iterator[Integers]:
    """Yield the labellings of all fans as the kernel orders them, in whole numbers."""
    size, flat = len(points), points.shape[1] == 2
    rows, _ = exact_rows(points)
    for a in range(size):
        edges = [_edge(rows[a], row) for row in rows]
        for b in [a] if flat else range(a + 1, size):
            yield from _reference_fan(a, b, edges)


def _reference_fan(a: int, b: int, edges: list[list[int]]) -> Iterator[Integers]:
    size, axis = len(edges), edges[b]
    if a == b:
        on_axis = [a]
        fold = [(k > a) - (k < a) for k in range(size)]
    else:
        views = [_cross(axis, edge) for edge in edges]
        on_axis = [k for k in range(size) if not any(views[k])]
        if any(a < k < b for k in on_axis):
            return
        first = next(k for k in range(size) if any(views[k]))
        same = [dot_product(views[first], view) for view in views]
        ahead = [_det(axis, edges[first], edge) or s for edge, s in zip(edges, same, strict=True)]
        fold = [(s > 0) - (s < 0) for s in ahead]

    def angle(k: int, m: int) -> int:
        turn = _cross(edges[k], edges[m])[0] if a == b else _det(axis, edges[k], edges[m])
        turn *= -fold[k] * fold[m]
        return (turn > 0) - (turn < 0)

    order = sorted((k for k in range(size) if fold[k]), key=functools.cmp_to_key(angle))
    end = 0
    while end < len(order):
        start = end
        while end < len(order) and angle(order[start], order[end]) == 0:
            end += 1
        for half in (1, -1):
            shown = [k for k in order[start:end] if fold[k] == half]
            hidden = [k for k in order[start:end] if fold[k] != half]
            # Counted elsewhere: see _kept in the kernel.
            if not hidden if a == b else min([b, *shown]) > max([a, *hidden]):
                continue
            labels = np.zeros(size, dtype=np.int64)
            labels[[k for k in on_axis if k >= b]] = 1
            for place, k in enumerate(order):
                labels[k] = (fold[k] == half) == (place < end)
            yield labels


def gap_along(normal: Vector, ones: Vectors, zeros: Vectors) -> tuple[Any, Any]:
    """Return the lowest place of label 1 and the highest of label 0 along the normal.

    Parameters
    ----------
    normal : list of whole numbers or fractions
        The direction.
    ones : list of rows
        Points with label 1.
    zeros : list of rows
        Points with label 0.
    """
    return min(dot_product(normal, row) for row in ones), max(
        dot_product(normal, row) for row in zeros
    )


def shortest_between(ones: Vectors, zeros: Vectors) -> list[int]:
    """Return the direction between the nearest points of both hulls, by Wolfe's algorithm."""
    corners = [_edge(zeros[0], ones[0])]
    weights = [Fraction(1)]
    while True:
        shortest = _mix(weights, corners)
        normal = without_fractions(shortest)
        low = min(ones, key=functools.partial(dot_product, normal))
        high = max(zeros, key=functools.partial(dot_product, normal))
        corner = _edge(high, low)
        if dot_product(normal, corner) >= dot_product(normal, shortest):
            return normal
        corners.append(corner)
        weights.append(Fraction(0))
        while min(aim := _balance(corners)) <= 0:
            # Go towards the aim until a weight vanishes, and leave its corner out.
            step, leaver = min(
                (w / (w - v) if w else Fraction(0), k)  # both may be 0: two vanished at once
                for k, (w, v) in enumerate(zip(weights, aim, strict=True))
                if v <= 0
            )
            weights = [w + step * (v - w) for w, v in zip(weights, aim, strict=True)]
            del weights[leaver], corners[leaver]
        weights = aim


def _mix(weights: Vector, corners: Vectors) -> list[Fraction]:
    return [Fraction(dot_product(weights, column)) for column in zip(*corners, strict=True)]


def _balance(corners: Vectors) -> list[Fraction]:
    """Return weights, with sum 1, of the shortest vector in the corners' affine hull."""
    edges: list[list[Fraction]] = []  # from the first corner, made orthogonal one by one
    changes: list[list[Fraction]] = []  # the weights that make each edge
    unit = [[Fraction(int(i == k)) for i in range(len(corners))] for k in range(len(corners))]
    aim = unit[0]
    for k in range(1, len(corners)):
        edge, change = _edge(corners[0], corners[k]), _edge(unit[0], unit[k])
        for other, other_change in zip(edges, changes, strict=True):
            part = Fraction(dot_product(edge, other)) / dot_product(other, other)
            edge = [u - part * v for u, v in zip(edge, other, strict=True)]
            change = [u - part * v for u, v in zip(change, other_change, strict=True)]
        part = Fraction(dot_product(corners[0], edge)) / dot_product(edge, edge)
        aim = [u - part * v for u, v in zip(aim, change, strict=True)]
        edges.append(edge)
        changes.append(change)
    return aim
