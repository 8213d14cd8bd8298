"""The public names with their signatures, as a file that can be compared."""

from benchmarks.house.signatures import lines


def test_every_public_name_stands_with_its_signature_and_its_place() -> None:
    found = lines()
    names, places = found[: found.index("")], found[found.index("") + 1 :]

    assert names == sorted(set(names))
    assert "theory additive_wigner(spike: ArrayLike, *, sigma: ArrayLike) -> Outlier" in names
    assert "theory class Semicircle .cdf(self, x: ArrayLike) -> Floats" in names
    assert "theory class Semicircle .variance (property)" in names
    assert any(line.startswith("losscurv plan(model: ") for line in names)
    assert not any("0x" in line or "requires_grad_" in line for line in names)
    assert any(line.startswith("theory.outliers: ") and "additive_wigner," in line for line in places)
    assert all(not part.startswith("_") for line in places for part in line.partition(":")[0].split("."))
