"""ClassModel: all that it takes to tell the class of a row, in one value and in one file.

The joint density tells the class of a row by Bayes' rule. Where columns of numbers are correlated, a second density, of
those columns as each class sees them, may tell it better; the probabilities are then the mean of both, by a share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from jointwise._checks import listed, shown
from jointwise._typing import AnyArray, FloatArray
from jointwise.exceptions import FileFormatError, InputError
from jointwise.joint import serialization
from jointwise.joint.density import JointDensity
from jointwise.joint.prediction import category_probabilities
from jointwise.joint.product import ProductMixture
from jointwise.joint.serialization import CLASSES, without_classes
from jointwise.joint.standardisation import ClassStandardisation
from jointwise.tables import decode, encode
from jointwise.tables.variables import Kind, Schema, Variable


def standardised_probabilities(
    standardisation: ClassStandardisation, mixture: ProductMixture, rows: FloatArray
) -> FloatArray:
    r"""P(class | row) by a density g of features as their class sees them, and of the class; shape (n, K).

    .. math:: P(y \mid x) \propto g(W_y^\top (x - \mu_y), y)\, |\det W_y|

    A row with a gap in a mixed column, or of no density anywhere, is NaN.

    Parameters
    ----------
    standardisation : ClassStandardisation
    mixture : ProductMixture
        g: of the mixed columns, then of the others, then of the class.
    rows : array of shape (n, N)
        Encoded features.
    """
    logs = np.empty((len(rows), len(standardisation.means)))
    for c, log_jacobian in enumerate(standardisation.log_jacobians):
        classes = np.full(len(rows), c)
        seen = np.column_stack([standardisation.apply(rows, classes), classes])
        logs[:, c] = np.where(np.isnan(seen[:, 0]), np.nan, mixture.logpdf(seen) + log_jacobian)
    found = np.full(logs.shape, np.nan)
    told = np.isfinite(logs.max(axis=1))
    found[told] = softmax(logs[told], axis=1)
    return found


def pooled(first: FloatArray, second: FloatArray, share: float) -> FloatArray:
    """Mean of two opinions, shapes (n, K); where the second has none, the first."""
    return np.where(np.isnan(second), first, (1 - share) * first + share * second)


@dataclass(frozen=True, eq=False)
class SecondDensity:
    """A density of columns as their class sees them, and how much it has to say.

    Parameters
    ----------
    standardisation : ClassStandardisation
        The map of each class.
    density : JointDensity
        Of the mixed columns, then of the other features, then of the class.
    share : float
        Its part of the probabilities, from 0 to 1.
    """

    standardisation: ClassStandardisation
    density: JointDensity
    share: float

    def __post_init__(self) -> None:
        known = isinstance(self.share, float | int) and not isinstance(self.share, bool)
        if not known or not 0 <= self.share <= 1:
            raise InputError(f"`share` must be a number from 0 to 1; got {shown(self.share)}.")

    def check(self, features: tuple[Variable, ...], n_classes: int) -> None:
        """Refuse what is not of these features and so many classes."""
        columns, (*seen, target) = self.standardisation.columns.tolist(), self.density.schema
        if target.categories is None or not len(target.categories) == len(self.standardisation.means) == n_classes:
            raise InputError(
                f"The second density must end with a class of {n_classes} categories, with a map for each; it ends "
                f"with {shown(target.name)}, {target.kind}, and has {len(self.standardisation.means)} maps."
            )
        if columns[-1] >= len(features) or any(features[n].kind is Kind.CATEGORICAL for n in columns):
            raise InputError(
                f"The columns that classes standardise must be numbers among {len(features)} features; got {columns}."
            )
        mixed, others = seen[: len(columns)], seen[len(columns) :]
        expected = [variable for n, variable in enumerate(features) if n not in columns]
        if [variable.kind for variable in mixed] != [Kind.CONTINUOUS] * len(columns) or others != expected:
            raise InputError(
                f"The second density must be of {len(columns)} continuous variables, then of the first one's other "
                f"features {listed([v.name for v in expected])}; it is of {listed([v.name for v in seen])}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a tree of plain values and arrays, which a file can hold."""
        return {
            "standardisation": self.standardisation.to_dict(),
            "share": self.share,
            "density": self.density._to_dict(),  # noqa: SLF001 -- a part of the same file
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SecondDensity:
        """Read what `to_dict` returned."""
        _check_parts(data, "its second density", {"standardisation", "share", "density"})
        density = JointDensity._from_dict(data["density"])  # noqa: SLF001
        return cls(ClassStandardisation.from_dict(data["standardisation"]), density, data["share"])


@dataclass(frozen=True, eq=False, repr=False)
class ClassModel:
    r"""What tells the class of a row: a joint density of features and class, and perhaps a second one.

    .. math:: P(y \mid x) = (1 - s)\, P_1(y \mid x) + s\, P_2(y \mid x)

    It is the ``class_model_`` of a fitted :class:`jointwise.JointClassifier`. :meth:`save` keeps it in a file, of which
    :func:`jointwise.load` reads the joint density.

    Parameters
    ----------
    density : JointDensity
    target : str
        The class: a categorical variable of ``density``, the last if there is a second density.
    second : SecondDensity, optional
        Of columns standardised within classes, with its share s.

    Examples
    --------
    >>> from jointwise import Dictionary, JointDensity
    >>> sex = Variable("sex", "categorical", categories=("F", "M"), dtype="string")
    >>> schema = Schema((Variable("pay", "continuous"), sex))
    >>> atoms = (Dictionary.grid("gaussian", 0, 1, n=2, scale=1), Dictionary.categories(2))
    >>> f = JointDensity(schema, ProductMixture([0.5, 0.5], [np.eye(2), np.eye(2)], atoms))
    >>> model = ClassModel(f, "sex")
    >>> model.predict_proba({"pay": [0.5, 3.0]}).round(4)
    array([[0.5   , 0.5   ],
           [0.0759, 0.9241]])
    >>> model.predict({"pay": [-1.0, 3.0]}).tolist()
    ['F', 'M']
    """

    density: JointDensity
    target: str
    second: SecondDensity | None = None

    def __post_init__(self) -> None:
        variable = self.density.schema[self.target]
        if variable.categories is None:
            raise InputError(f"The class must be categorical; {shown(self.target)} is {variable.kind}.")
        if self.second is not None:
            if self.density.names[-1] != self.target:
                raise InputError(
                    f"With a second density the class must be the last variable; {shown(self.target)} is followed by "
                    f"{shown(self.density.names[-1])}."
                )
            self.second.check(self.features.variables, len(variable.categories))

    @property
    def features(self) -> Schema:
        """The variables by which the class is told, in order."""
        return self.density.schema.select([name for name in self.density.names if name != self.target])

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes, in the order of the columns of probabilities."""
        return self.density.schema[self.target].categories or ()

    @property
    def share(self) -> float:
        """Share of the second density, zero without one."""
        return 0.0 if self.second is None else self.second.share

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """P(class | row) of encoded features; shape (n, K).

        Parameters
        ----------
        rows : array of shape (n, N)
            Encoded in the order of `features`; a NaN is integrated out.
        """
        n = self.density.schema.index(self.target)
        with_class = np.insert(rows, n, np.nan, axis=1)
        first = category_probabilities(self.density.mixture, n, with_class, len(self.classes))
        if self.second is None:
            return first
        second = standardised_probabilities(self.second.standardisation, self.second.density.mixture, rows)
        return pooled(first, second, self.second.share)

    def predict_proba(self, x: Any) -> FloatArray:
        """P(class | row) of a table, columns in the order of `classes`; shape (n, K).

        Parameters
        ----------
        x : frame, array of shape (n, N) or mapping of names to columns
            The features. A gap, a column that is not there and a category that was not seen are integrated out.
        """
        return self.probabilities(encode(x, self.features, unseen="missing", absent="missing"))

    def predict(self, x: Any) -> AnyArray:
        """Most probable class of each row of a table; shape (n,)."""
        best = np.argmax(self.predict_proba(x), axis=1).astype(np.float64)
        return np.asarray(decode(best[:, None], Schema((self.density.schema[self.target],)))[:, 0])

    def save(self, path: str | Path) -> None:
        """Write all of it to one file; :meth:`load` reads it back, and :func:`jointwise.load` its joint density."""
        second = None if self.second is None else self.second.to_dict()
        content = {**self.density._to_dict(), CLASSES: {"target": self.target, "second": second}}  # noqa: SLF001
        serialization.write(Path(path), content)

    @classmethod
    def load(cls, path: str | Path) -> ClassModel:
        """Read what :meth:`save` wrote, with every part checked."""
        found = read_model(path)
        if isinstance(found, ClassModel):
            return found
        raise InputError(
            f"{path} holds a joint density alone, with no class to tell; read it with jointwise.load, or save the "
            "`class_model_` of a JointClassifier there."
        )

    def __repr__(self) -> str:
        second = "" if self.second is None else f"; {self.share:.0%} by a second density"
        return (
            f"ClassModel({shown(self.target)} of {len(self.classes)} classes, by {len(self.features)} features{second})"
        )


def read_model(path: str | Path) -> ClassModel | JointDensity:
    """Return what a model file holds: all that tells a class, or a joint density alone."""
    return serialization.read(Path(path), _built)


def _built(content: Any) -> ClassModel | JointDensity:
    density = JointDensity._from_dict(without_classes(content))  # noqa: SLF001
    if CLASSES not in content:
        return density
    classes = content[CLASSES]
    _check_parts(classes, "its classes", {"target", "second"})
    second = None if classes["second"] is None else SecondDensity.from_dict(classes["second"])
    return ClassModel(density, classes["target"], second)


def _check_parts(data: Any, what: str, parts: set[str]) -> None:
    if not isinstance(data, Mapping) or set(data) != parts:
        raise FileFormatError(f"{what} must have the parts {', '.join(sorted(parts))}")
