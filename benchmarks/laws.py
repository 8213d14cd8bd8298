"""Speed and accuracy of our laws beside scikit-rmt and freealg, in one run.

    pip install "losscurv[bench]" && python -m benchmarks.laws

Prints two tables; a library that is not installed has empty columns. scikit-rmt wants numpy below 2, so give it an
environment of its own. Seconds are CPU seconds, the best of three; what would take long is timed on few points and
extrapolated, with a "~". References have 40 digits (mpmath); those of the Tracy-Widom laws are stored here, Fredholm
determinants of `benchmarks.tracy_widom_coefficients` that agree with Painleve II to 25 digits.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import mpmath as mp
import numpy as np

from benchmarks.timing import machine, percent, seconds, table, version
from theory.rmt import MarchenkoPastur, Semicircle, TracyWidom

Function = Callable[[Any], Any]
Functions = Mapping[str, Function]

PEERS = ("scikit-rmt", "freealg")
RATIOS = (1e-6, 0.25, 1.0, 4.0)
FEW = 200
"""Points on which a function is timed first."""

LONGEST, PROBE = 5.0, 1.0
"""Seconds: what is expected to take longer is extrapolated, from as many points as this time allows."""

MP, TW = "Marchenko-Pastur {}, q = {:g}", "Tracy-Widom {}, beta = {}"

TAILS = {
    1: {
        -8: 1.8068279211854167e-12,
        -6: 2.7073193253047731e-6,
        -4: 0.0075676785987964005,
        -3: 0.069600118867369888,
        -2: 0.27432019790921786,
        -1: 0.41621010448026772,
        0: 0.16809193379704807,
        1: 0.048578763088449265,
        2: 0.010402428915173008,
        4: 0.00022034448743299865,
        6: 1.9408140726462171e-6,
        8: 8.0454248798697386e-9,
    },
    2: {
        -8: 1.9859004257636575e-19,
        -6: 1.0622546741244511e-8,
        -4: 0.0035445535955092003,
        -3: 0.080319552939334548,
        -2: 0.41322414250512255,
        -1: 0.19278575800071471,
        0: 0.030627171644737332,
        1: 0.0024945618506107506,
        2: 0.00011244630169082707,
        4: 4.957912153331047e-8,
        6: 3.817232659009459e-12,
        8: 6.5335632069316115e-17,
    },
}
"""The Tracy-Widom laws: cdf up to -2, survival function from -1 on."""


# ------------------------------------------------------------------------------------------- libraries


def ours() -> Functions:
    """Functions of this library that are compared."""
    found: dict[str, Function] = {}
    for q in RATIOS:
        law = MarchenkoPastur(q=q, variance=1.0)
        found |= {MP.format(name, q): getattr(law, name) for name in ("cdf", "pdf", "ppf", "stieltjes")}
    found[MP.format("draws", 1.0)] = lambda size: MarchenkoPastur(q=1.0, variance=1.0).ppf(
        np.random.default_rng(1).random(size)
    )
    circle = Semicircle(sigma=1.0)
    found |= {f"semicircle {name}": getattr(circle, name) for name in ("cdf", "pdf", "ppf", "stieltjes")}
    for beta in TAILS:
        law = TracyWidom(beta=beta)
        found |= {TW.format(name, beta): getattr(law, name) for name in ("cdf", "sf", "pdf", "ppf")}
    return found


def scikit_rmt() -> Functions:
    """Functions of scikit-rmt, as far as it has them."""
    from skrmt.ensemble import spectral_law

    logging.getLogger("skrmt").setLevel(logging.ERROR)
    found: dict[str, Function] = {}
    for q in RATIOS:
        law = spectral_law.MarchenkoPasturDistribution(ratio=q)
        found |= {MP.format(name, q): getattr(law, name) for name in ("cdf", "pdf", "ppf")}
        found[MP.format("draws", q)] = lambda size, law=law: law.rvs(size=size)
    circle = spectral_law.WignerSemicircleDistribution()
    found |= {"semicircle cdf": circle.cdf, "semicircle pdf": circle.pdf}
    for beta in TAILS:
        law = spectral_law.TracyWidomDistribution(beta=beta)
        found |= {TW.format(name, beta): getattr(law, name) for name in ("cdf", "sf", "pdf", "ppf")}
    return found


def freealg() -> Functions:
    """Functions of freealg: densities and Stieltjes transforms, which have the opposite sign there."""
    from freealg import distributions

    found: dict[str, Function] = {"semicircle pdf": distributions.Wigner(2.0).density}
    for q in RATIOS:
        law = distributions.MarchenkoPastur(q)
        found[MP.format("pdf", q)] = law.density
        found[MP.format("stieltjes", q)] = lambda z, law=law: -law.stieltjes(z=z, alt_branch=False)
    return found


def peers() -> dict[str, Functions | None]:
    """Functions of the other libraries, None where one is not installed."""
    found: dict[str, Functions | None] = dict.fromkeys(PEERS)
    for name, load in zip(PEERS, (scikit_rmt, freealg), strict=True):
        try:
            found[name] = load()
        except ModuleNotFoundError:
            continue
    return found


def _cells(
    name: str, libraries: Mapping[str, Functions | None], told: Callable[[Function], str]
) -> Iterator[str]:
    for functions in libraries.values():
        if functions is None:
            yield "not installed"
        else:
            yield told(functions[name]) if name in functions else "-"


# ------------------------------------------------------------------------------------------- speed


def points(name: str, n: int) -> np.ndarray:
    """Arguments for a function, spread over the support of its law."""
    rng = np.random.default_rng(1)
    if " ppf" in name:
        return rng.random(n)
    if name.startswith("Tracy"):
        return rng.normal(-1.3, 1.3, n)
    circle = name.startswith("semicircle")
    q = 1.0 if circle else float(name.rpartition(" ")[2])
    low, high = (Semicircle(sigma=1.0) if circle else MarchenkoPastur(q=q, variance=1.0)).edges
    x = low + (high - low) * rng.random(n)
    return x + 1j * rng.normal(size=n) if "stieltjes" in name else x


def timed(function: Function, name: str, n: int) -> tuple[float, bool]:
    """CPU seconds of a function on n points, and whether they are extrapolated."""
    few = min(FEW, n)
    while True:
        spent = seconds(partial(function, points(name, few)), 2)
        if few == n or spent * n / few <= LONGEST:
            return seconds(partial(function, points(name, n))), False
        if 10 * spent > PROBE:
            return spent * n / few, True
        few = min(10 * few, n)  # what so few points take may be overhead


def speed(n: int, libraries: Mapping[str, Functions | None]) -> Iterator[list[str]]:
    """Rows: seconds here, seconds elsewhere and how many times ours."""
    for name, function in ours().items():
        if " draws" in name:
            continue
        own, _ = timed(function, name, n)

        def told(other: Function, name: str = name, own: float = own) -> str:
            spent, guessed = timed(other, name, n)
            times = spent / max(own, 1e-9)
            return f"{'~' * guessed}{spent:.3g} ({times:.{int(times < 10)}f} x)"

        yield [name, f"{own:.3f}", *_cells(name, libraries, told)]


# ------------------------------------------------------------------------------------------- accuracy


def accuracy(libraries: Mapping[str, Functions | None]) -> Iterator[list[str]]:
    """Rows: the largest error here and elsewhere."""
    everywhere = {"losscurv": ours(), **libraries}
    for label, name, x, expected, relative in _references():
        told = partial(_error, x=x, expected=expected, relative=relative)
        yield [label, *_cells(name, everywhere, told)]
    draws = _cells(MP.format("draws", 1.0), everywhere, lambda draw: str(np.isnan(draw(1000)).sum()))
    yield ["NaN among 1000 draws, q = 1", *draws]


def _references() -> Iterator[tuple[str, str, np.ndarray, np.ndarray, bool]]:
    """Label, function, points, values, and whether errors are relative."""
    for q in RATIOS:
        law = MarchenkoPastur(q=q, variance=1.0)
        low, high = law.edges
        small = 10.0 ** -np.arange(3, 12)
        x = low + (high - low) * np.concatenate([np.linspace(0.0, 1.0, 33), small, 1 - small])
        inside = low + (high - low) * np.linspace(0.01, 0.99, 25)
        z = np.concatenate([inside + 1e-6j, inside + 0.5j, high + np.arange(1, 4) + 1e-300j])
        for method, exact, at, relative in (
            ("cdf", _cdf, x, False),
            ("ppf", _ppf, np.array([0.1, 0.5, 0.8, 0.95, 0.999]), False),
            ("pdf", _density, inside, True),
            ("stieltjes", _stieltjes, z, True),
        ):
            name = MP.format(method, q)
            yield f"{'rel. ' * relative}error of {name}", name, at, _values(partial(exact, q), at), relative
            if method == "cdf" and law.atom:
                label = f"error of the mass at 0, q = {q:g}"
                yield label, name, np.zeros(1), np.array([law.atom]), False
    edge = np.array([-2 + 2.0**-20, -2 + 2.0**-30])
    for label, x, relative in (
        ("error of semicircle cdf", np.linspace(-2.0, 2.0, 33), False),
        ("rel. error of it at the edge + 1e-6, 1e-9", edge, True),
    ):
        yield label, "semicircle cdf", x, _values(_circle_cdf, x), relative
    for beta, tails in TAILS.items():
        s, small = np.array(list(tails), dtype=float), np.array(list(tails.values()))
        cdf, sf = (TW.format(name, beta) for name in ("cdf", "sf"))
        yield f"error of {cdf}", cdf, s, np.where(s <= -2, small, 1 - small), False
        for name, where in ((cdf, slice(2)), (sf, slice(-4, -2)), (sf, slice(-2, None))):
            first, second = s[where]
            method = name.split()[1].rstrip(",")
            label = f"rel. error of Tracy-Widom {method} at {first:g}, {second:g}, beta = {beta}"
            yield label, name, s[where], small[where], True


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


def _ppf(q: float, u: Any) -> Any:
    """By bisection."""
    low, high = _edges(q)
    if u <= _cdf(q, low):
        return mp.mpf(0)
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if _cdf(q, middle) < u else (low, middle)
    return low


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
    return percent(error) if relative else f"{error:.1e}"


def main(words: list[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.laws", description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=10**6, help="points of a timing (default: a million)")
    n = parser.parse_args(words).points
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the others
        found = peers()
        head = ["losscurv", *(f"{name} {version(name)}".strip() for name in PEERS)]
        print(machine("numpy", "scipy"), end="\n\n")
        print(table([f"CPU seconds for {n} points", *head], speed(n, found)), end="\n\n")
        print(table(["largest error", *head], accuracy(found)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
