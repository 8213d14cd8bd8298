"""Claims of `verify.claims.karakida2019.layer_norm.limits` without a closed form."""

from tests.verify.claims.closed_forms import A_NUMBER

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM = {
    "karakida2019/layer-norm-second-moment": A_NUMBER,
    "karakida2019/layer-norm-second-moment-order": A_NUMBER,
    "karakida2019/layer-norm-largest": "the prediction is the root that layer-norm-secular compares with a matrix",
}
