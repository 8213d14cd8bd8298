"""Speed and accuracy of our laws compared with closed forms in numpy, scikit-rmt and freealg, in one run.

    pip install "losscurv[bench]" && python -m benchmarks.laws

Prints two tables, with times on `--points` points.
A library that is not installed has empty columns. scikit-rmt wants numpy below 2, so give it an
environment of its own. Seconds are CPU seconds, the best of three; what would take long is timed on few points and
extrapolated, with a "~". References have 40 digits (mpmath); those of the Tracy-Widom laws are stored here, Fredholm
determinants of `benchmarks.tracy_widom_coefficients` that agree with Painleve II to 25 digits.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import mpmath as mp
import numpy as np

from benchmarks.timing import command, machine, seconds, table, version
from theory.rmt import MarchenkoPastur, Semicircle, TracyWidom

Function = Callable[[Any], Any]
Laws = Mapping[str, Any]
"""Laws by name: objects with the methods `METHODS`, or some of them."""

RATIOS = (1e-6, 0.25, 1.0, 4.0)
METHODS = ("cdf", "sf", "pdf", "ppf", "stieltjes")
MP, CIRCLE, TW = "Marchenko-Pastur, q = {:g}", "semicircle", "Tracy-Widom, beta = {}"

FEW = 200
"""Points on which a function is timed first."""

LONGEST, PROBE = 5.0, 1.0
"""Seconds: what is expected to take longer is extrapolated, from as many points as this time allows."""


def _by_place(*values: float) -> dict[int, float]:
    return dict(zip(range(-8, 10, 2), values, strict=True))


TAILS = {
    1: _by_place(
        1.8068279211854167e-12, 2.7073193253047731e-6, 0.0075676785987964005, 0.27432019790921786,
        0.16809193379704807, 0.010402428915173008, 0.00022034448743299865, 1.9408140726462171e-6, 8.0454248798697386e-9
    ),
    2: _by_place(
        1.9859004257636575e-19, 1.0622546741244511e-8, 0.0035445535955092003, 0.41322414250512255,
        0.030627171644737332, 0.00011244630169082707, 4.957912153331047e-8, 3.817232659009459e-12,
        6.5335632069316115e-17
    ),
}  # fmt: skip
"""The Tracy-Widom laws: cdf up to -2, survival function from 0 on."""

# ------------------------------------------------------------------------------------------- libraries

OURS: Laws = {
    **{MP.format(q): MarchenkoPastur(q=q, variance=1.0) for q in RATIOS},
    CIRCLE: Semicircle(sigma=1.0),
    **{TW.format(beta): TracyWidom(beta=beta) for beta in TAILS},
}


def closed_forms() -> Laws:
    """Densities and distribution functions in numpy, as textbooks print them."""

    def pastur(q: float) -> SimpleNamespace:
        low, high = (1 - np.sqrt(q)) ** 2, (1 + np.sqrt(q)) ** 2
        weight, both = min(1.0, 1 / q), 2 * np.sqrt(q)

        def root(x: Any) -> Any:
            return np.sqrt(np.maximum((high - x) * (x - low), 0))

        def cdf(x: Any) -> Any:
            first = np.arcsin(np.clip((x - 1 - q) / both, -1, 1))
            second = np.arcsin(np.clip(((1 + q) * x - (1 - q) ** 2) / both / x, -1, 1))
            return 1 - weight / 2 + (root(x) + (1 + q) * first - abs(1 - q) * second) / (2 * np.pi * q)

        return SimpleNamespace(cdf=cdf, pdf=lambda x: root(x) / (2 * np.pi * q * x))

    def circle(x: Any) -> Any:
        return 0.5 + (x / 2 * np.sqrt(1 - x * x / 4) + np.arcsin(x / 2)) / np.pi

    semicircle = SimpleNamespace(cdf=circle, pdf=lambda x: np.sqrt(np.maximum(4 - x * x, 0)) / (2 * np.pi))
    return {MP.format(q): pastur(q) for q in RATIOS} | {CIRCLE: semicircle}


def scikit_rmt() -> Laws:
    """Laws of scikit-rmt."""
    from skrmt.ensemble import spectral_law as its

    logging.getLogger("skrmt").setLevel(logging.ERROR)
    return {
        **{MP.format(q): its.MarchenkoPasturDistribution(ratio=q) for q in RATIOS},
        CIRCLE: its.WignerSemicircleDistribution(),
        **{TW.format(beta): its.TracyWidomDistribution(beta=beta) for beta in TAILS},
    }


def freealg() -> Laws:
    """Laws of freealg: densities and Stieltjes transforms, which have the opposite sign there."""
    from freealg import distributions

    def named(law: Any) -> SimpleNamespace:
        return SimpleNamespace(pdf=law.density, stieltjes=lambda z: -law.stieltjes(z=z, alt_branch=False))

    laws = {MP.format(q): named(distributions.MarchenkoPastur(q)) for q in RATIOS}
    return laws | {CIRCLE: SimpleNamespace(pdf=distributions.Wigner(2.0).density)}


def peers() -> dict[str, Laws | None]:
    """Laws of the other libraries, None where one is not installed."""
    found: dict[str, Laws | None] = {"numpy": closed_forms()}
    for name, load in {"scikit-rmt": scikit_rmt, "freealg": freealg}.items():
        try:
            found[name] = load()
        except ModuleNotFoundError:
            found[name] = None
    return found


def _cells(
    law: str, method: str, libraries: Mapping[str, Laws | None], told: Callable[[Function], str]
) -> Iterator[str]:
    for laws in libraries.values():
        if laws is None:
            yield "not installed"
        else:
            function = getattr(laws.get(law), method, None)
            yield told(function) if function else "-"


# ------------------------------------------------------------------------------------------- speed


def points(law: str, method: str, n: int) -> np.ndarray:
    """Arguments for a function, spread over the support of its law."""
    rng = np.random.default_rng(1)
    if method == "ppf":
        return rng.random(n)
    if law.startswith("Tracy"):
        return rng.normal(-1.3, 1.3, n)
    low, high = OURS[law].edges
    x = low + (high - low) * rng.random(n)
    return x + 1j * rng.normal(size=n) if method == "stieltjes" else x


def timed(function: Function, law: str, method: str, n: int) -> tuple[float, bool]:
    """CPU seconds of a function on n points, and whether they are extrapolated."""
    few = min(FEW, n)
    while True:
        spent = seconds(partial(function, points(law, method, few)), 2)
        if few == n or spent * n / few <= LONGEST:
            return seconds(partial(function, points(law, method, n))), False
        if 10 * spent > PROBE:
            return spent * n / few, True
        few = min(10 * few, n)  # what so few points take may be overhead


def speed(n: int, libraries: Mapping[str, Laws | None]) -> Iterator[list[str]]:
    """Rows: seconds here, seconds elsewhere and how many times ours."""
    for law, method in functions():
        own, _ = timed(getattr(OURS[law], method), law, method, n)

        def told(other: Function, law: str = law, method: str = method, own: float = own) -> str:
            spent, guessed = timed(other, law, method, n)
            times = spent / max(own, 1e-9)
            return f"{'~' * guessed}{spent:.3g} ({times:.{int(times < 10)}f} x)"

        yield [f"{law} {method}", f"{own:.3f}", *_cells(law, method, libraries, told)]


def functions() -> list[tuple[str, str]]:
    """Return the law and the method of all functions that are compared."""
    return [(name, method) for name, law in OURS.items() for method in METHODS if hasattr(law, method)]


# ------------------------------------------------------------------------------------------- accuracy


def accuracy(libraries: Mapping[str, Laws | None]) -> Iterator[list[str]]:
    """Rows: the largest error here and elsewhere."""
    for where, law, method, x, expected, relative in _references():
        told = partial(_error, x=x, expected=expected, relative=relative)
        label = f"{'rel. ' * relative}error of {law} {method}{where}"
        yield [label, *_cells(law, method, {"losscurv": OURS, **libraries}, told)]


def _references() -> Iterator[tuple[str, str, str, np.ndarray, np.ndarray, bool]]:
    """Where, law, method, points, values, and whether errors are relative."""
    for q in RATIOS:
        name, law = MP.format(q), OURS[MP.format(q)]
        low, high = law.edges
        small = 10.0 ** -np.arange(3, 12)
        x = low + (high - low) * np.concatenate([np.linspace(0.0, 1.0, 33), small, 1 - small])
        inside = low + (high - low) * np.linspace(0.01, 0.99, 25)
        z = np.concatenate([inside + 1e-6j, inside + 0.5j, high + np.arange(1, 4) + 1e-300j])
        yield "", name, "cdf", x, _values(partial(_cdf, q), x), False
        yield "", name, "pdf", inside, _values(partial(_density, q), inside), True
        yield "", name, "stieltjes", z, _values(partial(_stieltjes, q), z), True
        if law.atom:
            yield " at 0", name, "cdf", np.zeros(1), np.array([law.atom]), False
    edge, x = np.array([-2 + 2.0**-20, -2 + 2.0**-30]), np.linspace(-2.0, 2.0, 33)
    yield "", CIRCLE, "cdf", x, _values(_circle_cdf, x), False
    yield " at the edge + 1e-6, 1e-9", CIRCLE, "cdf", edge, _values(_circle_cdf, edge), True
    for beta, tails in TAILS.items():
        s, small = np.array(list(tails), dtype=float), np.array(list(tails.values()))
        yield "", TW.format(beta), "cdf", s, np.where(s <= -2, small, 1 - small), False
        for method, part in (("cdf", slice(2)), ("sf", slice(-4, -2)), ("sf", slice(-2, None))):
            yield f" at {s[part][0]:g}, {s[part][1]:g}", TW.format(beta), method, s[part], small[part], True


def _values(function: Function, x: np.ndarray) -> np.ndarray:
    with mp.workdps(40):
        found = [function(mp.mpmathify(t.item())) for t in x]
        return np.array([complex(v) for v in found]) if np.iscomplexobj(x) else np.array(found, dtype=float)


def _edges(q: float) -> tuple[Any, Any]:
    root = mp.sqrt(mp.mpf(q))
    return (1 - root) ** 2, (1 + root) ** 2


def _cdf(q: float, x: Any) -> Any:
    """The textbook closed form, whose cancellation 40 digits can afford."""
    low, high = _edges(q)
    q, c = mp.mpf(q), mp.sqrt(mp.mpf(q))
    atom = max(mp.mpf(0), 1 - 1 / q)
    if x <= low or x >= high:
        return atom if x <= low else mp.mpf(1)
    phi = mp.acos((1 + q - x) / (2 * c))
    last = 0 if q == 1 else 2 * abs(1 - q) * mp.atan((1 + c) / abs(1 - c) * mp.tan(phi / 2))
    return atom + ((1 + q) * phi + 2 * c * mp.sin(phi) - last) / (2 * mp.pi * q)


def _density(q: float, x: Any) -> Any:
    low, high = _edges(q)
    return mp.sqrt((high - x) * (x - low)) / (2 * mp.pi * q * x)


def _stieltjes(q: float, z: Any) -> Any:
    low, high = _edges(q)
    return (z - (1 - mp.mpf(q)) - mp.sqrt(z - low) * mp.sqrt(z - high)) / (2 * mp.mpf(q) * z)


def _circle_cdf(x: Any) -> Any:
    half = x / 2
    return mp.mpf(1) / 2 + (half * mp.sqrt(1 - half**2) + mp.asin(half)) / mp.pi


def _error(function: Function, x: np.ndarray, expected: np.ndarray, relative: bool) -> str:
    found = np.asarray(function(x.copy()))
    if np.isnan(found).any():
        return f"NaN at {np.isnan(found).sum()} of {x.size}"
    error = np.max(np.abs(found - expected) / (np.abs(expected) if relative else 1.0))
    if relative and error >= 0.01:
        return f"{error:.0%}"
    return f"{error:.1e}"


def main(words: list[str] | None = None) -> int:
    """Print both tables."""
    n = command("benchmarks.laws", __doc__, points=10**6).parse_args(words).points
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the others
        found = peers()
        head = ["losscurv", *(f"{name} {version(name)}".strip() for name in found)]
        print(machine("numpy", "scipy"), end="\n\n")
        print(table([f"CPU seconds for {n} points", *head], speed(n, found)), end="\n\n")
        print(table(["largest error", *head], accuracy(found)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
