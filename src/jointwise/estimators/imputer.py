"""JUPADImputer: gaps filled from the joint density."""

from __future__ import annotations

from typing import Any

from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from jointwise.estimators._base import JointEstimator
from jointwise.joint.prediction import fill
from jointwise.tables import decode


class JUPADImputer(OneToOneFeatureMixin, TransformerMixin, JointEstimator):
    """Fill each gap with its best guess given the rest of its row.

    The guess is the most probable category, the conditional mean, or the integer nearest to it; where heavy tails
    leave no mean it is the conditional median. Parameters are those of :class:`jointwise.JUPAD`.

    Attributes
    ----------
    density_ : JointDensity
        The joint density of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise import JUPADImputer
    >>> X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    >>> X[0, 1] = X[-1, 0] = np.nan
    >>> JUPADImputer(n_components=2, random_state=0).fit_transform(X)[[0, -1]].round(2)
    array([[0., 0.],
           [1., 1.]])
    """

    def transform(self, X: Any) -> Any:
        """``X`` with every gap filled; a category not seen at fit counts as a gap, with a warning."""
        rows = self._rows(X)
        density = self.density_
        return decode(fill(density.mixture, [v.kind for v in density.schema], rows), density.schema)
