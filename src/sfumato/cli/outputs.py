"""What ``sfumato protect`` is told about its outputs: which there are, how they are related, and where each is secret.

Outputs without a relation are bases; a base and what follows from it are one group. Bases that are correlated are
fitted together, and every other one has a prior of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from ..data import Inputs
    from ..models import JointPrior, Prior, PriorFamily, Relation
    from ..regions import Region


#: A colon between a name and its region; one in quotes belongs to the name of a column.
NAME_AND_REGION = re.compile(r"""((?:[^:`"']|`[^`]*`|"[^"]*"|'[^']*')*)(?<![0-9]T[0-9]{2}):(.*)""", re.DOTALL)

#: For each sensitive output where it is protected; None where it is one quantity without inputs.
Regions = dict[str, "Region | None"]


@dataclass(frozen=True)
class AskedOutputs:
    """The columns that are ``released``, the ``relations`` between them and to other quantities, and which columns are
    ``correlated`` with each other."""

    released: tuple[str, ...]
    relations: tuple[Relation, ...] = ()
    correlated: tuple[tuple[str, ...], ...] = ()

    @property
    def several(self) -> bool:
        """Whether they have to be protected together; one output alone needs no ``JointPrior``."""
        return len(self.names) > 1

    @property
    def bases(self) -> tuple[str, ...]:
        related = {relation.name for relation in self.relations}
        together = (name for names in self.correlated for name in names)
        named = (*self.released, *(relation.of for relation in self.relations), *together)
        return tuple(dict.fromkeys(name for name in named if name not in related))

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The bases, those that are fitted together in one block."""
        block_of = {name: names for names in self.correlated for name in names}
        return tuple(dict.fromkeys(block_of.get(base, (base,)) for base in self.bases))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the data that are read: what is released, and what a prior is fitted to."""
        return tuple(dict.fromkeys((*self.released, *self.bases)))

    def group(self, *bases: str) -> tuple[Relation, ...]:
        """What follows from ``bases``."""
        return tuple(relation for relation in self.relations if relation.of in bases)

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the blocks one after the other, as in the ``JointPrior``."""
        return tuple(name for block in self.blocks for name in (*block, *(one.name for one in self.group(*block))))

    @property
    def takes_input(self) -> dict[str, bool]:
        """For each name whether it is a function of the inputs, and not one number."""
        numbers = {relation.name for relation in self.relations if not relation.takes_input}
        return {name: name not in numbers for name in self.names}


def asked_outputs(
    output: Sequence[str], relation: Sequence[str], correlated: Sequence[str], inputs: Sequence[str]
) -> AskedOutputs:
    """What ``--output``, ``--relation`` and ``--correlated`` say, checked."""
    relations: tuple[Relation, ...] = ()
    if relation:  # else PyTorch is not needed to find out that options are wrong
        from ..models import parse_relation

        relations = tuple(parse_relation(text) for text in relation)
    names = [one.name for one in relations]
    asked = AskedOutputs(tuple(output), relations, _correlated(correlated, names))
    for name in (*output, *names, *asked.bases):
        if name in inputs:
            together = any(name in block for block in asked.correlated)
            what = "--output" if name in output else "--correlated" if together else "--relation"
            raise InputError(f"{what} {name!r} is also one of --inputs; inputs are published as they are.")
        if output.count(name) > 1:
            raise InputError(f"--output {name!r} is given more than once; name each output once.")
        if names.count(name) > 1:
            raise InputError(f"--relation has {name!r} on the left more than once; a quantity follows from one output.")
    for one in relations:
        if one.of in names:
            raise InputError(
                f"--relation {one.text!r}: {one.of!r} follows from another output itself; relate {one.name!r} to an "
                "output that does not."
            )
        if one.name in output and not one.takes_input:
            raise InputError(
                f"--output {one.name!r} is one number by its --relation, not a column; leave it out of --output, and "
                f"protect it with --region {one.name!r}."
            )
    return asked


def _correlated(texts: Sequence[str], related: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The names of each ``--correlated``, at least two, and none twice."""
    blocks, seen = [], set()
    for text in texts:
        names = tuple(names_in(text))
        if len(names) < 2:
            raise InputError(f"--correlated {text!r} names {len(names)} output(s); give two or more, as in infl,unemp.")
        for name in names:
            if name in related:
                raise InputError(
                    f"--correlated {text!r}: {name!r} follows from another output by its --relation; name that output."
                )
            if name in seen:
                raise InputError(f"--correlated names {name!r} more than once; give all that go together in one list.")
            seen.add(name)
        blocks.append(names)
    return tuple(blocks)


def known_name(name: str, names: Iterable[str], option: str) -> str:
    if name not in names:
        raise InputError(f"{option} names the output {name!r}; choose one of {', '.join(map(repr, names))}.")
    return name


def read_regions(
    texts: Sequence[str], takes_input: Mapping[str, bool], inputs: Sequence[str], option: str = "--region"
) -> Regions:
    """What ``--region`` says, or another ``option``.

    ``v: 1 <= t <= 2`` is about v, ``m`` about a quantity without inputs, and a region without a name about all outputs
    that are functions of the inputs. Of several about one output, all are meant.
    """
    from ..regions import parse_region

    found: Regions = {}
    for text in texts:
        prefix, where = _in_two(text, takes_input)
        names = [name for name, takes in takes_input.items() if takes]
        if prefix is not None:
            names = [known_name(prefix, takes_input, option)]
            if takes_input[prefix] and not where:
                raise InputError(
                    f"{option} {text!r} does not say where {prefix!r} is meant; write it as in "
                    f'{option} "{prefix}: 1 <= {inputs[0]} <= 2".'
                )
            if where and not takes_input[prefix]:
                raise InputError(
                    f"{option} {text!r}: {prefix!r} is one number and has no inputs; write {option} {prefix!r}."
                )
        region = None if prefix is not None and not where else parse_region(where, inputs, outputs=list(takes_input))
        for name in names:
            before = found.get(name)
            found[name] = region if before is None or region is None else before | region
    return {name: found[name] for name in takes_input if name in found}


def check_use(outputs: AskedOutputs, regions: Regions, levels: Mapping[str, Any]) -> None:
    """Refuse a quantity that nothing is done about, although its owner may think so; ``levels`` are alpha and floor."""
    for word, given in levels.items():
        named = given if isinstance(given, dict) else {}
        for name in named:
            if name not in regions:
                raise InputError(
                    f"--{word} {name}={named[name]:g}: {name!r} has no region, so that nothing of it is protected; add "
                    f'--region "{name}: …", or leave it out.'
                )
        missing = [name for name in regions if named and name not in named]
        if missing:
            raise InputError(
                f"--{word} says nothing of {missing[0]!r}, which is sensitive; add --{word} {missing[0]}=…."
            )
    for relation in outputs.relations:
        name = relation.name
        if name not in outputs.released and name not in regions:
            raise InputError(
                f"--relation {relation.text!r}: {name!r} is neither released nor sensitive; protect it with "
                f'--region "{name}{": …" if relation.takes_input else ""}", or leave the relation out.'
            )
    for name in (name for names in outputs.correlated for name in names):
        used = [name, *(relation.name for relation in outputs.group(name))]
        if not any(one in outputs.released or one in regions for one in used):
            raise InputError(
                f"--correlated names {name!r}, which is neither released nor sensitive; add --output {name!r} or "
                f'--region "{name}: …", or leave it out.'
            )


def is_named(text: str, names: Container[str]) -> bool:
    """Whether a text of ``--region`` is about one output only."""
    return _in_two(text, names)[0] is not None


def _in_two(text: str, names: Container[str]) -> tuple[str | None, str]:
    """A text ``name: region``, or a name alone, as name and region."""
    found = NAME_AND_REGION.fullmatch(text)
    if found is not None:
        return _unquoted(found[1]), found[2].strip()
    return (_unquoted(text), "") if _unquoted(text) in names else (None, text)


#: One of several names with commas between them; in backticks or double quotes it may have commas itself.
_ONE_NAME = re.compile(r"""\s*(?:(`(?:[^`]|``)*`|"(?:[^"]|"")*")\s*|([^,]*))(?:,|\Z)""")


def names_in(text: str) -> list[str]:
    """The names in a list with commas; one in backticks or double quotes is taken as it is.

    >>> names_in("t, place"), names_in('`a, "b"`,c'), names_in("`a``b`")
    (['t', 'place'], ['a, "b"', 'c'], ['a`b'])
    """
    found = [_unquoted(quoted) if quoted else plain.strip() for quoted, plain in _ONE_NAME.findall(text)]
    return [name for name in found if name]


def names_text(names: Iterable[str]) -> str:
    """The list that ``names_in`` reads as these names, with backticks where they are needed.

    >>> names_text(["t", "height, cm"])
    't,`height, cm`'
    """
    return ",".join(name if names_in(name) == [name] else "`" + name.replace("`", "``") + "`" for name in names)


def _unquoted(text: str) -> str:
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in '`"'
    return text[1:-1].replace(text[0] * 2, text[0]) if quoted else text


def numbers(option: str, given: Sequence[str], outputs: AskedOutputs) -> float | dict[str, float] | None:
    """One number for all outputs, or a dict where they were given as ``name=number``; None if nothing was given."""
    for_all: list[float] = []
    by_name: dict[str, float] = {}
    for text in given:
        name, sign, number = text.rpartition("=")
        name = _unquoted(name)
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise InputError(
                f"{option} is {text!r}; give a number, or one for an output as in {option} {outputs.names[-1]}=0.1."
            )
        if for_all and not sign:
            raise InputError(
                f"{option} is {number}, but it was given before ({for_all[0]:g}); give one number, or one for each "
                f"output as in {option} {outputs.names[-1]}=0.1."
            )
        if name in by_name:
            raise InputError(f"{option} {text!r}: {name!r} has a number already; give one for each output.")
        if sign:
            by_name[known_name(name, outputs.names, option)] = value
        else:
            for_all.append(value)
    if for_all and by_name:
        raise InputError(
            f"{option} is {for_all[0]:g}, and {next(iter(by_name))!r} has one of its own; give one number for all "
            "outputs, or one for each that is sensitive."
        )
    if by_name and outputs.several:
        return by_name
    return next(iter((*for_all, *by_name.values())), None)


def fitted_prior(
    outputs: AskedOutputs,
    table: pd.DataFrame,
    inputs: Sequence[str],
    regions: Regions,
    own_noise: Mapping[str, float],
    excluded: Callable[[Region | None, Inputs], Region | None],
    **fit: Any,
) -> tuple[Prior | PriorFamily | JointPrior, bool]:
    """One prior for each block of bases, fitted to its own columns, and all of them together; and whether sensitive
    rows have no part in it, which ``excluded`` decides for each region.

    ``noise`` is for the bases that ``own_noise`` leaves out; what follows from them has none if it is not said there.
    """
    from ..data import as_inputs
    from ..models import JointPrior, Value, fit_correlated, fit_prior

    X = table[list(inputs)]
    rows = as_inputs(X)
    parts, outside = [], True
    for block in outputs.blocks:
        sensitive, everywhere = _sensitive_rows(outputs, block, X, regions)
        exclude = None if everywhere else excluded(sensitive, rows)
        outside = outside and not everywhere and (exclude is not None or sensitive is None)
        noise = {base: own_noise.get(base, fit["noise"]) for base in block}
        if len(block) > 1:
            columns = {base: table[base] for base in block}
            if fit.get("coefficients", "published") != "published":
                raise InputError(
                    f"--coefficients is {fit['coefficients']!r}, but trends of --correlated outputs are published; "
                    "leave it out."
                )
            settings = {name: value for name, value in fit.items() if name != "coefficients"}
            part = fit_correlated(X, columns, exclude=exclude, **{**settings, "noise": noise})
        else:
            prior: Prior = fit_prior(X, table[block[0]], exclude=exclude, **{**fit, "noise": noise[block[0]]})
            if not outputs.several:
                return prior, outside
            part = JointPrior.of(prior, {block[0]: Value()})
        related = outputs.group(*block)
        functionals = {relation.name: (relation.of, relation.functional(X)) for relation in related}
        levels = {relation.name: own_noise[relation.name] for relation in related if relation.name in own_noise}
        parts.append(part.with_related(functionals, levels))
    return parts[0] if len(parts) == 1 else JointPrior.independent(*parts), outside


def _sensitive_rows(
    outputs: AskedOutputs, block: Sequence[str], X: pd.DataFrame, regions: Regions
) -> tuple[Region | None, bool]:
    """Where anything of a block and what follows from it is sensitive, and whether that is everywhere.

    What is correlated with a secret tells of it, so no output of the block is fitted to where one of them is secret.
    """
    found: Region | None = None
    for base in block:
        own = regions.get(base)
        found = own if found is None else found if own is None else found | own
    for relation in outputs.group(*block):
        if relation.name in regions:
            region = regions[relation.name] or relation.where(X)
            if region is None:  # a mean over all rows
                return None, True
            found = region if found is None else found | region
    return found, False
