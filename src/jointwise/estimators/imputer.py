"""JUPADImputer: gaps filled from the joint density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from jointwise.dictionary import Dictionary
from jointwise.estimators._base import JointEstimator
from jointwise.estimators._tables import generator
from jointwise.joint.prediction import draw, fill
from jointwise.tables import decode, read_table, with_columns
from jointwise.tables.variables import Schema


class JUPADImputer(OneToOneFeatureMixin, TransformerMixin, JointEstimator):
    """Fill each gap with its best guess given the rest of its row, or with a draw.

    The guess is the most probable category, the conditional mean, or the integer nearest to it; where heavy tails
    leave no mean it is the conditional median.

    Parameters
    ----------
    sample_posterior : bool
        Draw the gaps of a row together from their distribution given its observed cells, for multiple imputation.
        An integer ``random_state`` gives the same draws at each call of ``transform``, None gives others.
    **parameters
        All others are those of :class:`jointwise.JUPAD`.

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

    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        sample_posterior: bool = False,
        polish: Literal["likelihood"] | None = "likelihood",
        beta: float | Literal["auto"] = "auto",
        n_models: int | Literal["auto"] = "auto",
        loss: str = "kl",
        dictionaries: Literal["auto"] | Mapping[str, Dictionary] = "auto",
        learn_dictionary: bool | Literal["auto"] = "auto",
        kinds: Mapping[str, str] | None = None,
        supports: Mapping[str, tuple[Any, Any] | None] | None = None,
        steps: Mapping[str, float] | None = None,
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        n_bins: int = 128,
        learning_rates: tuple[float, float, float] | None = None,
        n_init: int = 5,
        max_iter: int = 500,
        tol: float = 1e-4,
        device: Literal["cpu", "cuda"] = "cpu",
        scratch_dir: str | Path | None = None,
        checkpoint: str | Path | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        super().__init__(
            n_components,
            polish=polish,
            beta=beta,
            n_models=n_models,
            loss=loss,
            dictionaries=dictionaries,
            learn_dictionary=learn_dictionary,
            kinds=kinds,
            supports=supports,
            steps=steps,
            drop=drop,
            keep=keep,
            n_bins=n_bins,
            learning_rates=learning_rates,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            device=device,
            scratch_dir=scratch_dir,
            checkpoint=checkpoint,
            random_state=random_state,
            verbose=verbose,
            on_interrupt=on_interrupt,
        )
        self.sample_posterior = sample_posterior

    def transform(self, X: Any) -> Any:
        """``X`` with every gap filled, as the kind of table it is or that ``set_output`` asks for.

        A category not seen at fit counts as a gap, with a warning. The index of a pandas frame is kept.
        """
        table = read_table(X)
        rows = self._rows(X)
        density = self.density_
        if self.sample_posterior:
            drawn = draw(density.mixture, rows, generator(self.random_state))
            filled = np.where(np.isnan(rows), density.schema.settle(drawn), rows)
        else:
            filled = fill(density.mixture, density.schema, rows)
        container = self._asked_container() or table.container
        frame = decode(filled, Schema(density.schema.variables, container))
        if self.left_out_:
            frame = with_columns(frame, container, table, self.left_out_)
        if container == table.container == "pandas":
            named = {str(name): name for name in X.columns}
            frame.index, frame.columns = X.index, [named[name] for name in frame.columns]
        return frame

    def _asked_container(self) -> str | None:
        """Library that ``set_output`` asks for: written here, each column keeps its type, also in a mixed table."""
        asked = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        return None if asked == "default" else str(asked)
