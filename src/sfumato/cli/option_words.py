"""Messages of the library in the words of the command line: ``alpha=0.1`` is ``--alpha 0.1`` there."""

from __future__ import annotations

import re

#: Arguments in Python that are options of commands.
_NAME = (
    r"(?:accept|accuracy|alpha|alphas|coefficients|correlated|cover|dask|decimal|device|draws|encoding|"
    r"evidence|family|floor|floors|grid|guarantee|inputs|insiders|kernel|lengthscale|max_error|max_loss|max_noise|"
    r"mean|method|noise|objective|output|port|protects|region|relation|resolution|sep|serve|share|spread|structure|"
    r"ways|weights)"
)

_RULES: tuple[tuple[str, str], ...] = (
    # where a message names both, the option is enough
    (r"\bfit_prior\([^()]*exclude=region\), (?=--)", ""),
    (r"\baccept=\([^()]*\), (?=--accept)", ""),
    (r"\bdrop_missing=True, (?=--)", ""),
    (r"\bsf\.[\w.]+ or (?=--)", ""),
    (r"\(sf\.\w+, (?=--|sfumato )", "("),
    (rf"\b{_NAME}=\"[^\"]*\"(?: or labels)?, (?=--)", ""),
    (rf"\b{_NAME}=\"[^\"]*\" \((--[^()]*)\)", r"\1"),
    (r"\bsf\.(rehearse|audit|suggest|tradeoff|report)\b", r"sfumato \1"),
    (r"\bfit_prior\(…, rows=(\d+)\)|\brows=(\d+)", r"--fit-rows \1\2"),
    (rf"(?<![\w.(])(?<!, )\b({_NAME})=\"([^\"]*)\"", r"--\1 \2"),
    (r"\bprior\.family\(\w+=\([^()]*\)\) or (?=--)", ""),
    # not a range of factors, as --family has
    (rf"(?<![\w.(])(?<!, )\b({_NAME})=([\d.]*\d)(?![\d.]*:)", r"--\1 \2"),
    # the argument that a message begins with
    (rf"\A({_NAME})(?= (?:is|has|are|names|needs|says)\b)", r"--\1"),
    (r"\Arows(?= is )", "--fit-rows"),
    (rf"(?<=, but )({_NAME})(?= is )", r"--\1"),
    (rf"(?<=leave )({_NAME})(?= out\b)", r"--\1"),
    (r"\b(or give|Give) lengthscale\b", r"\1 --lengthscale"),
    (r"\bname it in ways\b", "name it in --ways"),
    (r"\bsf\.protect proves\b", "sfumato protect proves"),
)


def in_options(text: str) -> str:
    """
    >>> in_options('cover is "x"; use cover="auto" (--cover auto), or alpha=0.1.')
    '--cover is "x"; use --cover auto, or --alpha 0.1.'
    >>> in_options('promise it to whoever holds rows (insiders="rows" or labels, --insiders)')
    'promise it to whoever holds rows (--insiders)'
    >>> in_options('blur every row by itself: structure="diagonal", --structure diagonal.')
    'blur every row by itself: --structure diagonal.'
    >>> in_options("promise it: prior.family(noise=(0.1, 1)) or --family noise=0.1:1, with the factors you fear")
    'promise it: --family noise=0.1:1, with the factors you fear'
    >>> in_options('serve is given, but objective is "noise"; give objective="predictions", or leave serve out.')
    '--serve is given, but --objective is "noise"; give --objective predictions, or leave --serve out.'
    """
    for pattern, instead in _RULES:
        text = re.sub(pattern, instead, text)
    # a path such as data--my_file.csv is no option
    return re.sub(r"(?<![\w./-])--\w+", lambda found: found[0].replace("_", "-"), text)
