"""The tree is the architecture: which part may import which, one way only."""

import ast
from pathlib import Path

import pytest

import jointwise

ROOT = Path(jointwise.__file__).parent
HELPERS = {"_typing", "_checks", "_files", "_numerics", "_progress", "exceptions"}

# Each part may import the helpers, itself, and what its line names; never a line below its own.
ALLOWED: dict[str, set[str]] = {
    "_typing": set(),
    "exceptions": set(),
    "_checks": set(),
    "_files": set(),
    "_numerics": set(),
    "_progress": set(),
    "tables": set(),
    "axes": {"tables"},
    "engines": set(),
    "warps": {"engines"},
    "families": {"warps"},
    "dictionary": {"families", "axes"},
    "marginals": {"tables", "axes", "engines"},
    "rows": {"tables", "axes", "engines", "marginals"},
    "solvers": {"engines"},
    "joint": {"tables", "axes", "warps", "families", "dictionary", "engines"},
    "fitting": {
        "tables", "axes", "warps", "families", "dictionary", "engines", "marginals", "rows", "solvers", "joint",
    },
    "estimators": {"tables", "axes", "dictionary", "engines", "marginals", "rows", "joint", "fitting", "solvers"},
    "metrics": {"tables", "dictionary", "joint"},
    "relatives": {
        "tables", "axes", "families", "dictionary", "engines", "marginals", "rows", "solvers", "joint", "fitting",
        "estimators", "metrics",
    },
    "datasets": {"tables", "families", "dictionary", "joint"},
    "plots": {"tables", "families", "dictionary", "joint"},
    "explore": {"tables", "dictionary", "joint", "plots"},
    "experiments": {
        "tables", "axes", "families", "dictionary", "marginals", "rows", "solvers", "joint", "fitting", "estimators",
        "metrics", "relatives", "datasets", "plots",
    },
    "cli": {"tables", "marginals", "rows", "estimators", "joint", "plots", "explore", "experiments"},
    "__main__": {"cli"},
}  # fmt: skip

# Third-party packages of each part beyond the standard library; numpy is everywhere.
PACKAGES: dict[str, set[str]] = {
    "_numerics": {"scipy"},
    "tables": {"narwhals", "scipy"},
    "families": {"scipy"},
    "engines": {"scipy", "numba", "threadpoolctl"},
    "marginals": {"narwhals", "scipy"},
    "rows": {"narwhals", "scipy"},
    "solvers": {"scipy"},
    "joint": {"scipy"},
    "fitting": {"scipy"},
    "estimators": {"scipy", "sklearn"},
    "relatives": {"scipy", "sklearn"},
    "datasets": {"sklearn"},
    "experiments": {"scipy", "sklearn", "joblib"},
    "cli": {"typer"},
}
# Imported inside a function only, and only when asked for.
OPTIONAL = {
    "pandas", "polars", "pyarrow", "matplotlib", "rich", "torch", "triton", "dask", "distributed", "pyspark", "py4j",
    "duckdb", "anywidget", "traitlets",
}  # fmt: skip
# Modules that are themselves imported so, and import their package at the top.
LAZY = {"engines/_cuda_kernel.py"}


# Methods that are doors to a part above: imported when called, and named here.
DOORS = {("joint/density.py", "explore")}


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> list[tuple[str, bool]]:
    """Modules that a file imports, and whether at the top level."""
    tree = ast.parse(path.read_text())
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path} uses a relative import"
            names = [node.module] if node.module != "jointwise" else [f"jointwise.{a.name}" for a in node.names]
        else:
            continue
        found += [(name, node.col_offset == 0) for name in names]
    return found


SOURCES = [p for p in sorted(ROOT.rglob("*.py")) if p != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_layout(path):
    part = part_of(path)
    assert part in ALLOWED, f"{part} has no line in the layout"
    for name, top in imported(path):
        if name.startswith("jointwise."):
            other = name.split(".")[1]
            if not top and (str(path.relative_to(ROOT)), other) in DOORS:
                continue
            assert other in ALLOWED[part] | HELPERS | {part}, f"{path.name} may not import {name}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_packages_stay_where_they_belong(path):
    import sys

    for name, top in imported(path):
        package = name.split(".")[0]
        if package in sys.stdlib_module_names or package in {"numpy", "jointwise"}:
            continue
        if package in OPTIONAL:
            lazy = str(path.relative_to(ROOT)) in LAZY
            assert lazy or not top, f"{path.name} imports the optional {package} at its top"
            continue
        assert package in PACKAGES.get(part_of(path), set()), f"{path.name} may not import {package}"


def test_the_layout_has_no_dead_lines_and_no_cycles():
    assert {part_of(p) for p in SOURCES} == set(ALLOWED)
    order = list(ALLOWED)
    for part, others in ALLOWED.items():
        assert all(order.index(other) < order.index(part) for other in others)


def test_public_names_are_pinned():
    assert sorted(jointwise.__all__) == [
        "ClassModel", "Dictionary", "GaussianBlocks", "JUPAD", "JointClassifier", "JointDensity", "JointEstimator",
        "JointImputer", "PairwiseMarginals", "Profile", "TreeMixture", "load",
    ]  # fmt: skip
    assert dir(jointwise) == sorted(jointwise.__all__)
    assert all(hasattr(jointwise, name) for name in jointwise.__all__)
