"""Exact integer polynomials in the dimensions that a graph leaves open.

A count is an int where every dimension is known and a `Poly` where some are not: `1920*N`, never an
estimate. A floor that doesn't divide out is an atom of its own, so that it stays exact too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roof_agent.errors import UsageError

# Bounds on what a file can make of its open dims; real networks stay far below.
MAX_TERMS = 20_000
MAX_DEGREE = 64
# Open dimensions take this size where two polynomials have to be ranked (worst branch, peak memory).
RANKING_SIZE = 64


@dataclass(frozen=True)
class Floor:
    """floor(numerator / denominator) that doesn't divide out; told apart by its `text`."""

    numerator: Poly | int = field(compare=False)
    denominator: Poly | int = field(compare=False)
    text: str

    def __str__(self) -> str:
        """Return it as it is printed inside a polynomial."""
        return self.text


def _floor(numerator: Poly | int, denominator: Poly | int) -> Poly:
    atom = Floor(numerator, denominator, f"floor(({numerator})/({denominator}))")
    return Poly({((atom, 1),): 1})


Atom = str | Floor
Monomial = tuple[tuple[Atom, int], ...]


class Poly:
    """A polynomial with integer coefficients and at least one atom; immutable."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = dict(terms)
        self._hash = hash(frozenset(self.terms.items()))

    def __hash__(self) -> int:
        """Hash by value."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Two polynomials are equal where their terms are; none equals a number."""
        return isinstance(other, Poly) and self.terms == other.terms

    def __add__(self, other: Poly | int) -> Poly | int:
        """Add."""
        terms = dict(self.terms)
        for monomial, factor in _terms(other).items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return _made(terms)

    __radd__ = __add__

    def __neg__(self) -> Poly | int:
        """Negate."""
        return _made({monomial: -factor for monomial, factor in self.terms.items()})

    def __sub__(self, other: Poly | int) -> Poly | int:
        """Subtract."""
        return self + (-other)

    def __rsub__(self, other: Poly | int) -> Poly | int:
        """Subtract from `other`."""
        return (-self) + other

    def __mul__(self, other: Poly | int) -> Poly | int:
        """Multiply."""
        terms: dict[Monomial, int] = {}
        factors = _terms(other)
        if len(self.terms) * len(factors) > MAX_TERMS:
            raise UsageError("the counts take polynomials of too many terms: bind some of the open dims")
        for left, a in self.terms.items():
            for right, b in factors.items():
                product = _times(left, right)
                terms[product] = terms.get(product, 0) + a * b
        return _made(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Poly | int) -> Poly | int:
        """Divide, rounding down: exactly where it divides out, else as an atom."""
        return floor_divide(self, other)

    def __rfloordiv__(self, other: Poly | int) -> Poly | int:
        """Divide `other`, rounding down."""
        return floor_divide(other, self)

    def __mod__(self, other: Poly | int) -> Poly | int:
        """Return what the division leaves."""
        return self - floor_divide(self, other) * other

    def __str__(self) -> str:
        """Return it as `2*N*T + 3`, highest degree first."""
        ordered = sorted(self.terms.items(), key=lambda term: (-sum(e for _, e in term[0]), str(term[0])))
        text = " + ".join(_printed(monomial, factor) for monomial, factor in ordered)
        return text.replace("+ -", "- ")

    __repr__ = __str__

    def symbols(self) -> set[str]:
        """Return the names of the open dimensions in it."""
        found: set[str] = set()
        for monomial in self.terms:
            for atom, _ in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    found |= symbols_of(atom.numerator) | symbols_of(atom.denominator)
        return found

    def evaluate(self, sizes: Mapping[str, int], default: int | None = None) -> int:
        """Return its value; a name that `sizes` lacks takes `default` (KeyError where that is None)."""
        return sum(
            factor * math.prod(_value(atom, sizes, default) ** exponent for atom, exponent in monomial)
            for monomial, factor in self.terms.items()
        )


Dim = int | Poly


def symbol(name: str) -> Poly:
    """Return the polynomial that is one open dimension."""
    return Poly({((name, 1),): 1})


def symbols_of(value: Dim) -> set[str]:
    """Return the open dimensions in a count."""
    return value.symbols() if isinstance(value, Poly) else set()


def evaluate(value: Dim, sizes: Mapping[str, int], default: int | None = None) -> int:
    """Return a count with its open dimensions set."""
    return value.evaluate(sizes, default) if isinstance(value, Poly) else value


def rank(value: Dim) -> int:
    """Return a number to order counts by."""
    return evaluate(value, {}, RANKING_SIZE)


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product, 1 for none."""
    return math.prod(dims)


def floor_divide(value: Dim, divisor: Dim) -> Dim:
    """Return floor(value / divisor), exactly. ZeroDivisionError for a divisor of 0."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value // divisor
    if isinstance(divisor, int):
        if divisor == 0:
            raise ZeroDivisionError("division of a dimension by 0")
        return _divide_by_number(value, divisor)
    return _divide_by_poly(value, divisor)


def ceil_divide(value: Dim, divisor: Dim) -> Dim:
    """Return ceil(value / divisor), exactly."""
    return -floor_divide(-value, divisor)


def _divide_by_number(value: Dim, divisor: int) -> Dim:
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, factor in _terms(value).items():
        if factor % divisor == 0:
            whole[monomial] = factor // divisor
        elif not monomial:
            whole[monomial], rest[monomial] = divmod(factor, divisor)
        else:
            rest[monomial] = factor
    # What is left is a constant below the divisor, or nothing: it rounds away.
    if all(not monomial for monomial in rest):
        return _made(whole)
    return _made(whole) + _floor_by_number(_made(rest), divisor)


def _floor_by_number(value: Dim, divisor: int) -> Poly:
    """Return the floor as an atom, one inside merged: floor((floor(p/m) + c)/n) = floor((p + c*m)/(m*n))."""
    terms = _terms(value)
    inner = [monomial for monomial in terms if monomial]
    if len(inner) == 1 and terms[inner[0]] == 1 and len(inner[0]) == 1:
        atom, exponent = inner[0][0]
        if isinstance(atom, Floor) and exponent == 1 and isinstance(atom.denominator, int):
            constant = terms.get((), 0)
            return _floor(atom.numerator + constant * atom.denominator, atom.denominator * divisor)
    return _floor(value, divisor)


def _divide_by_poly(value: Dim, divisor: Poly) -> Dim:
    if value == 0:
        return 0
    if len(divisor.terms) == 1:
        [(monomial, factor)] = divisor.terms.items()
        quotient: dict[Monomial, int] = {}
        for term, coefficient in _terms(value).items():
            left = _without(term, monomial)
            if left is None or coefficient % factor:
                break
            quotient[left] = coefficient // factor
        else:
            return _made(quotient)
    numerator = _terms(value)
    if numerator.keys() == divisor.terms.keys():
        ratios = {divmod(numerator[key], divisor.terms[key]) for key in numerator}
        if len(ratios) == 1:
            [(ratio, left_over)] = ratios
            if left_over == 0:
                return ratio
    return _floor(value, divisor)


def _terms(value: Dim) -> Mapping[Monomial, int]:
    if isinstance(value, Poly):
        return value.terms
    return {(): int(value)} if value else {}


def _made(terms: Mapping[Monomial, int]) -> Dim:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Poly(kept)


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, exponent in right:
        powers[atom] = powers.get(atom, 0) + exponent
        if powers[atom] > MAX_DEGREE:
            raise UsageError(f"the counts take {atom} to a power above {MAX_DEGREE}: bind it")
    return tuple(sorted(powers.items(), key=lambda power: str(power[0])))


def _without(term: Monomial, divisor: Monomial) -> Monomial | None:
    powers = dict(term)
    for atom, exponent in divisor:
        left = powers.get(atom, 0) - exponent
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, exponent) for atom, exponent in powers.items() if exponent)


def _value(atom: Atom, sizes: Mapping[str, int], default: int | None) -> int:
    if isinstance(atom, Floor):
        divisor = evaluate(atom.denominator, sizes, default)
        return evaluate(atom.numerator, sizes, default) // (divisor or 1)
    return sizes[atom] if default is None else sizes.get(atom, default)


def _printed(monomial: Monomial, factor: int) -> str:
    powers = [str(atom) if exponent == 1 else f"{atom}^{exponent}" for atom, exponent in monomial]
    if factor == 1 and powers:
        return "*".join(powers)
    if factor == -1 and powers:
        return "-" + "*".join(powers)
    return "*".join([str(factor), *powers])
