"""What estimators that hold another one share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from jointwise._checks import shown
from jointwise.estimators._tables import TableEstimator
from jointwise.estimators.joint_estimator import JointEstimator
from jointwise.exceptions import InputError
from jointwise.joint.density import JointDensity


class ComposedEstimator(TableEstimator):
    """An estimator that rests on the ``density_`` of the one it holds, which it clones and fits."""

    def _unfitted(self, default: Callable[[], Any] = JointEstimator) -> Any:
        """Return a copy of the estimator to be fitted, with this one's seed if it has one."""
        held = default() if self.estimator is None else self.estimator
        if isinstance(held, type) or not (hasattr(held, "fit") and hasattr(held, "get_params")):
            raise InputError(
                "`estimator` must be an estimator that has a `density_` once fitted, such as JointEstimator(), or "
                f"None; got {shown(self.estimator)}."
            )
        copy = clone(held)
        if self.random_state is not None and "random_state" in copy.get_params():
            copy.set_params(random_state=self.random_state)
        return copy

    def _keep_fitted(self, fitted: Any) -> None:
        density = getattr(fitted, "density_", None)
        if not isinstance(density, JointDensity):
            raise InputError(
                "`estimator` must be an estimator that has a `density_` once fitted, such as JointEstimator(); "
                f"{type(fitted).__name__} has none."
            )
        self.estimator_, self.density_ = fitted, density

    def _adopt_names(self, n_features: int) -> None:
        """Keep the number and names of the first features of the fitted estimator."""
        self.n_features_in_ = n_features
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_[:n_features]
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_

    def summary(self) -> str:
        """Return text on what was fitted and how it was chosen, then one line per column."""
        check_is_fitted(self, "density_")
        held = self.estimator_
        # a paragraph on the fit, then the table of columns
        fit, *table = (held.summary() if hasattr(held, "summary") else repr(self.density_)).split("\n\n", 1)
        return "\n\n".join([f"{type(self).__name__}, by {fit}", *table])


def weights_for(estimator: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the argument that hands weights to an estimator's `fit`; nothing where there are none."""
    if sample_weight is None:
        return {}
    if not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(
            f"{type(estimator).__name__} takes no sample_weight; leave it out, or hold an estimator that does."
        )
    return {"sample_weight": sample_weight}
