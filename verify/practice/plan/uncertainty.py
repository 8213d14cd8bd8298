"""How far the rates that a walk finds were from the best on networks that no constant of it was chosen on.

From a pilot with separate code, until the table of hold-out networks in `benchmarks/rates` stands in its place.

=====================  ==========================================================================================
`FACTOR`               by which the rate to start with is said to be uncertain
`WITHIN`               share of hold-out cells (network, batch size) whose best rate lay within that factor: with
                       a step back, and without
`REGRET`, `REGRETTED`  loss lost by the rate, over what training gains with the best one, and the share of cells
                       in which it was at most that
`EDGE_WITHIN`          share of cells in which the largest rate of short rungs lay within the same factor of that of
                       200 steps
=====================  ==========================================================================================
"""

__all__ = ["EDGE_WITHIN", "FACTOR", "REGRET", "REGRETTED", "SOURCE", "WITHIN", "uncertainty"]

FACTOR = 2.0
WITHIN = (0.73, 0.86)
REGRET, REGRETTED = 0.1, 0.91
EDGE_WITHIN = 0.95
SOURCE = "pilot, shorter rungs: 13 hold-out networks, SGD, 200 steps"


def uncertainty() -> str:
    """What is known of it, in one sentence.

    Examples
    --------
    >>> print(uncertainty())
    pilot, shorter rungs: 13 hold-out networks, SGD, 200 steps, within 2x in 73 to 86 %, regret at most .1 in 91 %
    """
    low, high = (round(100 * share) for share in WITHIN)
    regret = f"{REGRET:g}".removeprefix("0")
    return f"{SOURCE}, within {FACTOR:g}x in {low} to {high} %, regret at most {regret} in {round(100 * REGRETTED)} %"
