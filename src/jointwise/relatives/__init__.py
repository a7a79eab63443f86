"""The methods that JUPAD builds on or is compared with, behind one face: fit, score_samples, sample where defined."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
