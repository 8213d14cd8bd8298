"""Is my formula right? A verdict by simulation.

You have derived a formula for the mean of something random, and you can simulate it. How do you find out
whether the formula is right? A plot with points near a line convinces the author. `losscurv.check` gives a
verdict instead: *agrees*, *disagrees* or *undecided*, with a stated chance of being wrong.

The example is a basic one of random-matrix theory. A symmetric matrix of pure noise has eigenvalues between
−2 and 2. Add a single direction with eigenvalue θ, the *spike*. What is the largest eigenvalue of the sum?
"""

import matplotlib.pyplot as plt
import numpy as np

import losscurv

# ## Formula and simulation
#
# The formula has two branches. A spike above the threshold 1 appears at θ + 1/θ. A smaller one stays hidden
# in the noise, and the largest eigenvalue is 2. The simulation draws one matrix and returns one number. It
# takes its random numbers from `rng`.

SIZE = 200


def largest_predicted(spike: float) -> float:
    """Return the limit of the largest eigenvalue for large matrices."""
    return spike + 1 / spike if spike > 1 else 2.0


def largest_simulated(rng: np.random.Generator, spike: float) -> float:
    """Return the largest eigenvalue of one matrix."""
    noise = rng.standard_normal((SIZE, SIZE))
    matrix = (noise + noise.T) / np.sqrt(2 * SIZE)
    matrix[0, 0] += spike
    return np.linalg.eigvalsh(matrix)[-1]


# ## The verdict
#
# Decide before the run which difference still counts as agreement. The formula is for infinitely large
# matrices; at a size of 200 a hidden spike gives an eigenvalue 1 to 2 % below 2. So the margin is 3 %. Also
# name a formula that the run must reject, called a *rival*: here the upper branch for every spike. A check
# that would pass with a wrong formula shows nothing.

points = [{"spike": spike} for spike in (0.5, 1.5, 2.0, 3.0)]
rivals = {"no threshold": lambda spike: spike + 1 / spike}
result = losscurv.check(largest_predicted, largest_simulated, points, margin=0.03, rivals=rivals)
print(result)

# After `+-` is half the length of the confidence interval. A point agrees if its whole interval lies within
# the margin. The rival is rejected at θ = 0.5, the one point where it differs. The simulation was called
# until every verdict was clear; you need not know the variance.

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
result.plot(axes)
axes.set(xlabel="spike θ", ylabel="largest eigenvalue", title="")
axes.set_title("Largest eigenvalue: θ + 1/θ above the threshold, else 2", loc="left")
figure.savefig("check_a_formula.png", dpi=150)

# ![Largest eigenvalue against the spike: points on the predicted line, the rival far above at 0.5](check_a_formula.png)
#
# ## A wrong formula
#
# Suppose you had overlooked the threshold. The verdict is clear after a few matrices:

wrong = losscurv.check(rivals["no threshold"], largest_simulated, points, margin=0.03)
print(wrong)

# ## Undecided is an answer too
#
# With a margin of 0.1 % and at most 200 matrices, nothing can be said. The result says how many matrices
# would be needed. They might then disagree, because 0.1 % is less than the effect of the finite size.

unclear = losscurv.check(largest_predicted, largest_simulated, [{"spike": 2.0}], margin=0.001, budget=200)
print(unclear)

# ## What to try next
#
# - Set `SIZE = 20`. Does the formula still agree?
# - Pass `{"spike": hypothesis.strategies.floats(0.1, 4)}` as points, and the check looks for the simplest
#   value that fails.
# - Put the check into your tests with the fixture `losscurv_check`, and read about bounds, probabilities,
#   distributions and exponents: [Check your formula](../check.md).
# - The same formula, judged with many rivals: `losscurv claims theorem 4` lists it among the statements of [Granziol et
#   al. (2022)](../claims/granziol2022.md).
