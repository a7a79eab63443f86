"""ClassModel: a complete model of the class of a row, in one object and one file.

A joint density of features and class gives the class of a row by Bayes' rule. Older files may hold a second density
too, of columns standardised within each class; the probabilities are then a weighted mean of both. New files have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from jointwise._checks import listed, shown
from jointwise._typing import AnyArray, FloatArray, IntArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, InputError
from jointwise.families import Category
from jointwise.joint import serialization
from jointwise.joint.block import BlockMixture
from jointwise.joint.density import JointDensity
from jointwise.joint.events import Values
from jointwise.joint.expert import Expert
from jointwise.joint.forest import ForestMixture
from jointwise.joint.prediction import category_probabilities
from jointwise.joint.product import ProductMixture
from jointwise.joint.serialization import CLASSES, without_classes
from jointwise.joint.standardisation import ClassStandardisation
from jointwise.joint.sum import mixed, parts_of
from jointwise.tables import decode, encode
from jointwise.tables.variables import Kind, Schema, Variable


def with_levels(density: JointDensity, name: str, codes: IntArray) -> JointDensity:
    """Return the density given that a categorical variable has one of some levels, as its only levels.

    Parameters
    ----------
    density : JointDensity
    name : str
    codes : array of shape (K,)
        Positions of the levels to keep, increasing.

    Examples
    --------
    >>> schema = Schema((Variable("size", "categorical", categories=("S", "M", "L"), dtype="string"),))
    >>> f = JointDensity(schema, ProductMixture([1.0], [[[0.5], [0.2], [0.3]]], [Dictionary.categories(3)]))
    >>> with_levels(f, "size", np.array([0, 2])).mixture.coefficients[0].ravel()
    array([0.625, 0.375])
    """
    n, variables = density.schema.index(name), list(density.schema)
    levels = variables[n].categories or ()
    if len(codes) == len(levels):
        return density
    variables[n] = replace(
        variables[n], categories=tuple(levels[code] for code in codes), observed=(0.0, len(codes) - 1.0)
    )
    given = density.mixture.condition({n: Values(tuple(codes.astype(float).tolist()))})
    numbers = np.searchsorted(codes, np.arange(len(levels)))
    schema = Schema(tuple(variables), density.schema.container)
    return replace(density, schema=schema, mixture=renumbered(given, n, numbers))


def renumbered(expert: Expert, n: int, numbers: IntArray) -> Expert:
    """Return an expert whose category c of variable n has the code ``numbers[c]``; those in use must differ."""
    parts, shares = zip(*parts_of(expert), strict=True)
    return mixed([_renumbered(part, n, numbers) for part in parts], shares)


def _renumbered(expert: Expert, n: int, numbers: IntArray) -> Expert:
    assert isinstance(expert, ProductMixture | BlockMixture | ForestMixture)  # the experts that have dictionaries
    k = expert.others.index(n) if isinstance(expert, BlockMixture) else n
    dictionaries = list(expert.dictionaries)
    families = [family for family in dictionaries[k].families if isinstance(family, Category)]  # that is all of them
    dictionaries[k] = Dictionary(
        tuple(Category(numbers[family.code.astype(np.intp)].astype(float)) for family in families)
    )
    return replace(expert, dictionaries=tuple(dictionaries))


def standardised_probabilities(standardisation: ClassStandardisation, mixture: Expert, rows: FloatArray) -> FloatArray:
    r"""P(class | row) from a density g of the class and of features standardised within it; shape (n, K).

    .. math:: P(y \mid x) \propto g(W_y^\top (x - \mu_y), y)\, |\det W_y|

    The result is NaN for a row with a gap in a mixed column, or with density zero in every class.

    Parameters
    ----------
    standardisation : ClassStandardisation
    mixture : Expert
        The density g of the mixed columns, the other features and the class, in this order.
    rows : array of shape (n, N)
        Encoded features.
    """
    logs = np.empty((len(rows), len(standardisation.means)))
    for c, log_jacobian in enumerate(standardisation.log_jacobians):
        classes = np.full(len(rows), c)
        seen = np.column_stack([standardisation.apply(rows, classes), classes])
        logs[:, c] = np.where(np.isnan(seen[:, 0]), np.nan, mixture.logpdf(seen) + log_jacobian)
    found = np.full(logs.shape, np.nan)
    known = np.isfinite(logs.max(axis=1))
    found[known] = softmax(logs[known], axis=1)
    return found


def pooled(first: FloatArray, second: FloatArray, share: float) -> FloatArray:
    """Weighted mean of two arrays of probabilities; the first alone where the second is NaN; shape (n, K)."""
    return np.where(np.isnan(second), first, (1 - share) * first + share * second)


@dataclass(frozen=True, eq=False)
class SecondDensity:
    """A density of columns standardised within classes, and its weight, as older files may hold it.

    Parameters
    ----------
    standardisation : ClassStandardisation
        The map of each class.
    density : JointDensity
        Density of the mixed columns, the other features and the class, in this order.
    share : float
        Weight of this density in the probabilities, from 0 to 1.
    """

    standardisation: ClassStandardisation
    density: JointDensity
    share: float

    def __post_init__(self) -> None:
        known = isinstance(self.share, float | int) and not isinstance(self.share, bool)
        if not known or not 0 <= self.share <= 1:
            raise InputError(f"`share` must be a number from 0 to 1; got {shown(self.share)}.")

    def check(self, features: tuple[Variable, ...], n_classes: int) -> None:
        """Raise unless the density belongs to these features and this number of classes."""
        columns, (*seen, target) = self.standardisation.columns.tolist(), self.density.schema
        if target.categories is None or not len(target.categories) == len(self.standardisation.means) == n_classes:
            raise InputError(
                f"The second density must end with a class of {n_classes} categories, with a map for each; its last "
                f"variable is {shown(target.name)}, {target.kind}, and it has {len(self.standardisation.means)} maps."
            )
        if columns[-1] >= len(features) or any(features[n].kind is Kind.CATEGORICAL for n in columns):
            raise InputError(f"The standardised columns must be numbers among {len(features)} features; got {columns}.")
        mixed, others = seen[: len(columns)], seen[len(columns) :]
        expected = [variable for n, variable in enumerate(features) if n not in columns]
        if [variable.kind for variable in mixed] != [Kind.CONTINUOUS] * len(columns) or others != expected:
            raise InputError(
                f"The second density must have {len(columns)} continuous variables, then the other features of the "
                f"first one, {listed([v.name for v in expected])}; it has {listed([v.name for v in seen])}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays, as a file holds them."""
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
    r"""A model of the class of a row: a joint density f of features and class.

    .. math:: P(y \mid x) = \frac{f(x, y)}{\sum_k f(x, k)}

    It is the ``class_model_`` of a fitted :class:`jointwise.JointClassifier`. :meth:`save` writes it to a file;
    :func:`jointwise.load` reads the joint density from that file.

    Parameters
    ----------
    density : JointDensity
    target : str
        The class: a categorical variable of ``density``, the last one if there is a second density.
    second : SecondDensity, optional
        Density of columns standardised within classes, which older files may hold. The probabilities are then a mean of
        those of both densities, with its share as the weight.

    Examples
    --------
    >>> from jointwise import Dictionary, JointDensity
    >>> from jointwise.joint import ProductMixture
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
            if self.density.schema.names[-1] != self.target:
                raise InputError(
                    f"With a second density the class must be the last variable; {shown(self.target)} is followed by "
                    f"{shown(self.density.schema.names[-1])}."
                )
            self.second.check(self.features.variables, len(variable.categories))

    @property
    def features(self) -> Schema:
        """The variables other than the class, in order."""
        return self.density.schema.select([name for name in self.density.schema.names if name != self.target])

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes, in the order of the columns of probabilities."""
        return self.density.schema[self.target].categories or ()

    @property
    def share(self) -> float:
        """Share of the second density; zero without one."""
        return 0.0 if self.second is None else self.second.share

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """P(class | row) for encoded features; shape (n, K).

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
        """P(class | row) for each row of a table, with columns in the order of `classes`; shape (n, K).

        Parameters
        ----------
        x : frame, array of shape (n, N) or mapping of names to columns
            The features. Gaps, missing columns and unknown categories are integrated out.
        """
        return self.probabilities(encode(x, self.features, unseen="missing", absent="missing"))

    def predict(self, x: Any) -> AnyArray:
        """Most probable class of each row of a table; shape (n,)."""
        best = np.argmax(self.predict_proba(x), axis=1).astype(np.float64)
        return np.asarray(decode(best[:, None], Schema((self.density.schema[self.target],)))[:, 0])

    def save(self, path: str | Path) -> None:
        """Write the model to one file; :meth:`load` reads it back, and :func:`jointwise.load` its joint density."""
        second = None if self.second is None else self.second.to_dict()
        content = {**self.density._to_dict(), CLASSES: {"target": self.target, "second": second}}  # noqa: SLF001
        serialization.write(Path(path), content)

    @classmethod
    def load(cls, path: str | Path) -> ClassModel:
        """Read a model written by :meth:`save`, with every part checked."""
        found = read_model(path)
        if isinstance(found, ClassModel):
            return found
        raise InputError(
            f"{path} holds a joint density alone, without a class; read it with jointwise.load, or save the "
            "`class_model_` of a JointClassifier there."
        )

    def __repr__(self) -> str:
        second = "" if self.second is None else f"; {self.share:.0%} by a second density"
        return (
            f"ClassModel({shown(self.target)} of {len(self.classes)} classes, by {len(self.features)} features{second})"
        )


def read_model(path: str | Path) -> ClassModel | JointDensity:
    """Read a model file: a class model, or a joint density alone."""
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
