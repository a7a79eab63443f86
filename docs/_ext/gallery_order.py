"""The order of the gallery: first what everybody needs, then questions, gaps and rows, then what is inside."""

STORIES = (
    "first_look",
    "page",
    "conditional_questions",
    "filling_gaps",
    "gaps_that_tell",
    "odd_rows",
    "classes_with_gaps",
    "regression_intervals",
    "synthetic_rows",
    "correlated_columns",
    "tree_of_columns",
    "hospitals",
    "parquet",
    "textures",
    "figure_one",
    "hand_written_dictionary",
    "family_of_ones_own",
    "xor",
)


class StoryOrder:
    """Key by which Sphinx-Gallery sorts scripts."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> int:
        """Return the place of a script; a new one comes last."""
        name = filename.removeprefix("plot_").removesuffix(".py")
        return STORIES.index(name) if name in STORIES else len(STORIES)

    def __repr__(self) -> str:
        return f"StoryOrder({STORIES})"
