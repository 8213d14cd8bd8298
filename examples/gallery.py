"""Pictures of the laws, with the code that draws them.

Each picture shows a law as a line and fresh random draws as points. The code above a picture draws it in
seconds with public calls. The command `losscurv gallery` draws figures of claims that it judges first, with rivals
and intervals; verdicts are in the [report](../verdicts.md).
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import losscurv
from losscurv import theory

rng = np.random.default_rng(2024)
torch.manual_seed(0)


def noisy(size: int, spikes: list[float]) -> np.ndarray:
    """Return a symmetric noise matrix with edges -2 and 2, plus a matrix with these eigenvalues."""
    noise = rng.standard_normal((size, size))
    return (noise + noise.T) / np.sqrt(2 * size) + np.diag([*spikes] + [0.0] * (size - len(spikes)))


def save(name: str, title: str, **axes: str) -> None:
    """Save the current picture and begin a new one."""
    plt.gca().set(**axes)
    plt.title(title, loc="left")
    if plt.gca().get_legend_handles_labels()[0]:
        plt.legend(frameon=False)
    plt.gcf().set_size_inches(7, 3.4)
    plt.savefig(f"{name}.png", dpi=150, bbox_inches="tight")
    plt.close()


# ## Noise with spikes
#
# Noise alone fills the semicircle. A matrix of low rank adds an eigenvalue outside only if it is strong
# enough: of four spikes the one of 0.6 stays hidden.

spikes, x = [-2.5, 0.6, 1.5, 3.0], np.linspace(-2, 2, 200)
plt.hist(np.linalg.eigvalsh(noisy(600, spikes)), 90, density=True, color="tab:orange", alpha=0.5)
plt.plot(x, theory.rmt.Semicircle(sigma=1.0).pdf(x), label="semicircle law")
outliers = theory.outliers.additive_wigner(spikes, sigma=1.0).eigenvalue
plt.plot(outliers, [0.02] * 4, "|", color="tab:blue", ms=24, mew=2, label="predicted place of a spike")
save("semicircle", "Spikes θ appear at θ + 1/θ if |θ| > 1", xlabel="eigenvalue", ylabel="density")

# ![Histogram of eigenvalues on the semicircle, with three predicted outliers](semicircle.png)
#
# The same for a matrix of second moments of n samples in p dimensions.

p, n, x = 300, 600, np.linspace(0, 3.5, 200)
noise = rng.standard_normal((p, n))
spiked = noise @ noise.T / n + np.diag([3.0] + [0.0] * (p - 1))
plt.hist(np.linalg.eigvalsh(spiked), 90, density=True, color="tab:orange", alpha=0.5)
plt.plot(x, theory.rmt.MarchenkoPastur(q=p / n, variance=1.0).pdf(x), label="Marchenko-Pastur law")
outlier = theory.outliers.additive_wishart(3.0, q=p / n, variance=1.0).eigenvalue
plt.plot(outlier, 0.02, "|", color="tab:blue", ms=24, mew=2, label="predicted place of a spike of 3")
save("marchenko-pastur", "Second moments of noise, p/n = 1/2", xlabel="eigenvalue", ylabel="density")

# ![Histogram of eigenvalues on the Marchenko-Pastur law, with one predicted outlier](marchenko-pastur.png)
#
# ## The threshold
#
# Once a spike leaves the bulk, its eigenvector can be recognised. At finite size the overlap grows smoothly.

x, points = np.linspace(0.2, 3, 200), np.linspace(0.4, 2.8, 9)
drawn = [[np.linalg.eigh(noisy(150, [s])).eigenvectors[0, -1] ** 2 for _ in range(16)] for s in points]
plt.plot(x, theory.outliers.additive_wigner(x, sigma=1.0).overlap, label="1 − 1/θ² above 1")
plt.errorbar(points, np.mean(drawn, 1), np.std(drawn, 1) / 4, fmt="o", ms=4, label="measured, 150 x 150")
save("transition", "Squared overlap of the eigenvectors", xlabel="spike θ", ylabel="overlap")

# ![Overlap of eigenvectors against the spike: zero below 1, then rising](transition.png)
#
# ## Largest eigenvalue against batch size
#
# On random samples Theorem 4 of Granziol et al. (2022) holds at every batch size.

sizes, sigma, dim = 2.0 ** np.arange(9), 0.1, 200
settings = {"sigma": sigma, "dim": dim, "batch_size": sizes, "dataset_size": np.inf}
noise = sigma * np.sqrt(dim / sizes)
drawn = [np.linalg.eigvalsh(scale * noisy(dim, [1 / scale]))[-1] for scale in noise]
plt.loglog(sizes, theory.batch_hessian.batch_eigenvalue(1.0, **settings), label="Theorem 4")
plt.loglog(sizes, drawn, "o", ms=4, label="one draw")
save("batch-size", "λ₁ + Pσ²/(Bλ₁) above the threshold, else 2σ√(P/B)", xlabel="batch size B", ylabel="λ₁(B)")

# ![Largest eigenvalue against batch size: draws on the line of Theorem 4](batch-size.png)
#
# On a network it is too low at small batches, outside the limit of large P and B for which it is stated
# ([What holds on real networks](../networks.md)). The own-direction law uses statistics of single samples.

targets = torch.arange(600) % 10
inputs = torch.randn(10, 20)[targets] + torch.randn(600, 20)
model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10))
found = losscurv.plan(
    model, (inputs, targets), batch_sizes=[1, 4, 16, 64], steps=10, curvature=True
).linearised
assert found is not None
sizes = [rate.batch_size for rate in found.rates]
plt.loglog(sizes, [rate.batch.mean.value for rate in found.rates], label="own-direction law, mean")
plt.loglog(sizes, [2 / rate.theorem_4.value for rate in found.rates], "--", label="Theorem 4")
for size in sizes:
    for rows in torch.randperm(600)[: 8 * size].split(size):
        batch = losscurv.gauss_newton(losscurv.Objective(model, (inputs[rows], targets[rows])))
        plt.loglog(size, losscurv.extremes(batch).values, "k_")
save("network", "Largest eigenvalue of G of a batch, small network", xlabel="batch size B", ylabel="λ₁(B)")

# ![Largest eigenvalue against batch size on a network: Theorem 4 is too low at small batches](network.png)
#
# ## Learning rates in training
#
# With 60 % random labels the largest rate of SGD grows linearly with B and then levels off; that of Adam
# grows as √B ([B47, B57](../claims/granziol2022.md)). The trial runs here are short, on a grid of factors of
# 4.

labels = torch.where(torch.rand(600) < 0.6, torch.randint(10, (600,)), targets)
for name in ("sgd", "adam"):
    plan = losscurv.plan(model, (inputs, labels), name, batch_sizes=[1, 4, 16, 64], steps=100)
    rates = [trial.start or np.nan for trial in plan.trials]
    plt.loglog([trial.batch_size for trial in plan.trials], rates, "o-", label=name)
save("rates-in-training", "Rate that short trial runs suggest", xlabel="batch size B", ylabel="learning rate")

# ![Suggested learning rate of SGD and Adam against batch size](rates-in-training.png)
#
# ## Fisher eigenvalues of wide networks
#
# Karakida et al. (2019): the largest eigenvalue of the Fisher matrix grows like the width. Mean subtraction
# and batch normalisation of the last layer prevent that; so does batch normalisation in the middle layers of
# a tanh network, but not in those of a ReLU network, nor layer normalisation
# ([C41](../claims/karakida2019.md)).


def largest_of_network(width: int) -> float:
    """Return the largest Fisher eigenvalue of one random ReLU network of three layers."""
    layers = [nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 8)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=(2 / width) ** 0.5)
        nn.init.zeros_(layer.bias)
    net = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    objective = losscurv.Objective(net, (torch.randn(100, width), torch.zeros(100, 8)), nn.MSELoss())
    return float(losscurv.extremes(losscurv.fisher(objective, likelihood="gaussian")).values[0])


# The prediction is the leading order in the width. Eight outputs have eight nearly equal eigenvalues, so
# their largest lies above it at small widths.

law = {"depth": 3, "samples": 100, "outputs": 8, "weight_variance": 2.0, "bias_variance": 0.0}
widths = [25, 50, 100, 200, 400]
predicted = [theory.fisher.eigenvalue_statistics("relu", width=width, **law).largest for width in widths]
plt.loglog(widths, predicted, label="Theorem 2.2")
plt.loglog(widths, [largest_of_network(width) for width in widths], "o", ms=4, label="one network each")
save("fisher-width", "Largest Fisher eigenvalue ∝ width", xlabel="width", ylabel="largest eigenvalue")

# ![Largest Fisher eigenvalue against width: proportional](fisher-width.png)
#
# ## The Goldilocks zone
#
# Vysogorets et al. (2024). The [tutorial](goldilocks_zone.md) explains the zone itself. Here is their formula
# for the excess of the Gauss-Newton part G from the softmax, eq. (8), with the variances of the logit
# gradients as measured. It is for an infinite sample, so it is too high once few samples carry the curvature.

layers = [nn.Linear(64, 30, bias=False), nn.ReLU(), nn.Linear(30, 10, bias=False)]
net, images = nn.Sequential(*layers).double(), torch.randn(100, 64).double()
start = nn.utils.parameters_to_vector(net.parameters()).detach()
frame = torch.linalg.qr(torch.randn(len(start), 50).double()).Q
classes = torch.arange(100) % 10

# The kernel has the inner products of the gradients of logits, from which both variances follow.

kernel = losscurv.empirical_kernel(net, images).diagonal(dim1=1, dim2=3).mean(2) / len(start)
common = float(kernel.sum() - kernel.trace()) / 9900
spread = {"sigma_c": common**0.5, "sigma_e": (float(kernel.diagonal().mean()) - common) ** 0.5}
for scale in np.geomspace(0.5, 20, 12):
    nn.utils.vector_to_parameters(scale * start, net.parameters())
    gamma = theory.softmax.gamma(net(images).softmax(1).detach().numpy(), average=True)
    g = losscurv.projected(losscurv.Objective(net, (images, classes)), frame).g_term
    plt.semilogx(scale, theory.gauss_newton.expected_excess(gamma, dim=50, **spread), "_", color="tab:blue")
    plt.semilogx(scale, float(g.trace() / g.norm()), "o", color="tab:orange", ms=4)
save("excess-law", "Excess of G: eq. (8) as bars, measured as points", xlabel="scale α", ylabel="excess of G")

# ![Excess of G against scale: the formula is too high at large scales](excess-law.png)
#
# Over class priors the gradient norm grows in proportion to the distance of the mean prediction from the
# prior, as in their Figure 5. It is larger than the model says, as it is on their networks
# ([A36](../claims/vysogorets2024.md)).

nn.utils.vector_to_parameters(start, net.parameters())
settings = {"dim": len(start), "sigma_c": spread["sigma_c"]}
prediction = net(images).softmax(1).mean(0).detach().numpy()
for _ in range(40):
    drawn = torch.multinomial(torch.rand(10) ** 4, 100, replacement=True)
    prior = np.bincount(drawn, minlength=10) / 100
    predicted = theory.gauss_newton.expected_gradient_norm(prediction, prior, **settings)
    measured = losscurv.Objective(net, (images, drawn)).gradient().norm()
    plt.plot(predicted, measured, "o", color="tab:orange", ms=4)
plt.axline((0.3, 0.3), slope=1)
save("gradient", "Gradient norm over class priors", xlabel="√P σ_c |Q̂ − Q|", ylabel="measured")

# ![Gradient norm over class priors: proportional to the prediction, above the line](gradient.png)
#
# ## The figure of a claim
#
# `losscurv plot --claim vysogorets2024/eq-8 --out eq-8.pdf` draws the figure of a claim of `losscurv-report/`:
# prediction, margin, rivals, points and intervals. If the folder does not have the claim, the command judges
# it first. In Python `losscurv.plot("losscurv-report", "vysogorets2024/eq-8")` returns a figure of
# matplotlib; `None` in place of the folder judges the claim first.
