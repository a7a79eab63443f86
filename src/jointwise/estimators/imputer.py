"""JUPADImputer: gaps filled from the joint density."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from jointwise.estimators._base import JointEstimator
from jointwise.joint.prediction import fill
from jointwise.tables import decode, read_table
from jointwise.variables import Schema


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
        """``X`` with every gap filled, as the kind of table it is or that ``set_output`` asks for.

        A category not seen at fit counts as a gap, with a warning. The index of a pandas frame is kept.
        """
        table = read_table(X)
        rows = self._rows(X)
        density = self.density_
        filled = fill(density.mixture, [v.kind for v in density.schema], rows)
        container = self._asked_container() or table.container
        frame = decode(filled, Schema(density.schema.variables, container))
        if container == table.container == "pandas":
            named = {str(name): name for name in X.columns}
            frame.index, frame.columns = X.index, [named[name] for name in frame.columns]
        return frame

    def _asked_container(self) -> str | None:
        """Library that ``set_output`` asks for: written here, each column keeps its type, also in a mixed table."""
        asked = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        return None if asked == "default" else str(asked)
