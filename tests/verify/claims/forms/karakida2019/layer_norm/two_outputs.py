"""Claims of `verify.claims.karakida2019.layer_norm.two_outputs` without a closed form."""

from tests.verify.claims.closed_forms import A_NUMBER

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM = {"karakida2019/layer-norm-two-outputs-in-practice": A_NUMBER}
