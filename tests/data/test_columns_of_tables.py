"""Dates, text and categories as inputs: what a table says is what its columns of numbers, made by hand, say."""

from __future__ import annotations

import copy
import re

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.data import Encoding, as_inputs
from sfumato.models import build_kernel, describe_kernel
from sfumato.regions import parse_region

RNG = np.random.default_rng(17)
ROWS = 36
PENGUINS = pd.DataFrame(
    {
        "species": RNG.choice(["Adelie", "Chinstrap", "Gentoo penguin"], ROWS),
        "bill": RNG.normal(44.0, 4.0, ROWS).round(1),
        "sex": pd.Categorical(RNG.choice(["male", "female"], ROWS), categories=["male", "female"]),
    },
    index=[f"bird {i}" for i in range(ROWS)],
)
MASS = pd.Series(RNG.normal(4.0, 0.5, ROWS), index=PENGUINS.index, name="mass")
#: The same in numbers: the levels in the order that they have.
BY_HAND = np.column_stack(
    [
        *(PENGUINS["species"].to_numpy() == level for level in ("Adelie", "Chinstrap", "Gentoo penguin")),
        PENGUINS["bill"],
        *(PENGUINS["sex"].to_numpy() == level for level in ("male", "female")),
    ]
).astype(float)

CO2 = pd.DataFrame({"date": pd.date_range("1985-01-05", periods=40, freq="W"), "height": np.tile([3.0, 7.0], 20)})
PPM = pd.Series(345.0 + 3.0 * np.sin(np.arange(40) / 6.0), name="ppm")
DAYS = (CO2["date"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)


def prior(lengthscales, variance=1.0, noise=0.05):
    tree = {"kind": "scale", "variance": variance, "kernel": {"kind": "rbf", "lengthscale": lengthscales}}
    return sf.Prior(build_kernel(tree, len(lengthscales)), noise=noise)


# ---------------------------------------------------------------- the same as by hand, to the last bit


TASKS = {
    "penguins": (
        PENGUINS,
        BY_HAND,
        MASS,
        prior([1.5, 1.5, 1.5, 6.0, 2.0, 2.0]),
        "species = Adelie and 40 <= bill <= 46",
        sf.Box([1, 0, 0, 40, None, None], [1, 0, 0, 46, None, None]),
        "species = Adelie and 40 ≤ bill ≤ 46",
    ),
    "levels": (
        PENGUINS,
        BY_HAND,
        MASS,
        prior([1.5, 1.5, 1.5, 6.0, 2.0, 2.0]),
        sf.Box({"species": ["Adelie", "Gentoo penguin"], "sex": "female", "bill": (42, 44)}),
        sf.Box([1, 0, 0, 42, 0, 1], [1, 0, 0, 44, 0, 1]) | sf.Box([0, 0, 1, 42, 0, 1], [0, 0, 1, 44, 0, 1]),
        'species in (Adelie, "Gentoo penguin") and 42 ≤ bill ≤ 44 and sex = female',
    ),
    "co2": (
        CO2,
        np.column_stack([DAYS, CO2["height"]]),
        PPM,
        prior([60.0, 5.0], 9.0),
        "1985-04-01 <= date < 1985-06-01",
        sf.Box([5569.0, None], [5630.0, None]),
        "1985-04-01 ≤ date ≤ 1985-06-01",
    ),
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_table_is_protected_as_its_numbers_are(task, tmp_path):
    table, numbers, y, reader, asked, in_numbers, words = task
    region = sf.parse_region(asked, list(table.columns)) if isinstance(asked, str) else asked
    made = sf.protect(reader, table, region, alpha=0.3, progress=False)
    by_hand = sf.protect(reader, numbers, in_numbers, alpha=0.3, progress=False)
    assert np.array_equal(made.inputs, numbers)
    assert np.array_equal(made.noise.covariance(), by_hand.noise.covariance())
    assert made.certificate.evidence == by_hand.certificate.evidence == "proved"
    # what is promised is said of the table
    assert words in made.certificate.promise
    assert made.region.in_words() == words
    first = table.columns[0]
    place = made.certificate.worst_place
    assert f"{first} = {'' if first == 'species' else '1985-'}" in place
    assert not re.search(r"\dT\d", place) or re.search(r"\dT\d", words)  # a time only where the promise has times
    assert not re.search(r":\d\d:\d\d", place)

    made.release(y, unsafe_seed=1).save(tmp_path / "table.sfumato")
    read, plain = sf.load(tmp_path / "table.sfumato"), by_hand.release(y.to_numpy(), unsafe_seed=1)
    assert np.array_equal(read.outputs, plain.outputs)
    few = table.iloc[5:8]  # with fewer levels than the whole
    assert np.array_equal(read.predict(few).mean, plain.predict(numbers[5:8]).mean)
    assert np.array_equal(read.predict(few[list(reversed(few.columns))]).std, plain.predict(numbers[5:8]).std)
    assert np.array_equal(read.prior.covariance(few), reader.covariance(numbers[5:8]))
    again = read.certify(progress=False)
    assert again.holds
    assert again.promise == made.certificate.promise
    assert again.worst_place == read.certificate.worst_place
    assert list(read.design.inputs.frame().columns) == list(table.columns)


def test_a_prior_remembers_the_table_that_it_was_fitted_to():
    fitted = sf.fit_prior(PENGUINS, MASS, lengthscale=[2.0] * 3, noise=0.1, progress=False)
    direct = sf.fit_prior(BY_HAND, MASS.to_numpy(), lengthscale=[2.0] * 6, noise=0.1, progress=False)
    assert fitted.covariance(PENGUINS) == pytest.approx(direct.covariance(BY_HAND), rel=1e-6)
    assert "2 (levels of species), 2 (bill), 2 (levels of sex)" in str(fitted)
    some = PENGUINS[PENGUINS["species"] == "Adelie"]
    mechanism = sf.protect(fitted, some, sf.Box({"bill": (42, 44)}), alpha=0.3, progress=False)
    assert np.array_equal(mechanism.inputs, BY_HAND[PENGUINS["species"] == "Adelie"])
    with pytest.raises(sf.InputError, match=r"'species' has the value 'Emperor', .* knows Adelie, Chinstrap"):
        fitted.covariance(PENGUINS.assign(species="Emperor"))
    each = sf.fit_prior(PENGUINS, MASS, "rbf(column=[species, sex], lengthscale=2)", noise=0.1, progress=False)
    assert np.array_equal(each.covariance(BY_HAND), each.covariance(np.where(np.arange(6) == 3, 0.0, BY_HAND)))
    dated = sf.fit_prior(CO2, PPM, lengthscale=[92.0, 5.0], noise=0.1, mean="linear", progress=False)
    assert "lengthscales 92 days (date), 5 (height)" in str(dated)
    season = "periodic(period=365.25, lengthscale=2, column=date) + linear(column=date)"
    words = str(sf.fit_prior(CO2, PPM, season, noise=0.1, progress=False))
    assert "lengthscale 2 (date), period 365.2 days (date)" in words  # a season's shape has no unit
    assert "centre 1985-05-22T12:00 (date), width 136.5 days (date)" in words


def test_levels_share_the_lengthscale_that_is_most_likely():
    y = 0.2 * MASS.to_numpy() + BY_HAND[:, :3] @ [0.0, 1.0, 3.0] + np.sin(BY_HAND[:, 3] / 2.0)
    fitted = sf.fit_prior(PENGUINS, y, "rbf", mean=4.0, progress=False)
    tree = describe_kernel(fitted.kernel)
    lengths = np.array(tree["kernel"]["lengthscale"])
    assert len({*lengths[:3]}) == len({*lengths[4:]}) == 1

    def likelihood(factors):
        kernel = {**tree, "kernel": {**tree["kernel"], "lengthscale": (lengths * factors).tolist()}}
        total = sf.Prior(build_kernel(kernel, 6)).covariance(BY_HAND) + fitted.noise * np.eye(ROWS)
        return scipy.stats.multivariate_normal(np.full(ROWS, 4.0), total).logpdf(y)

    for shared in ([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]):
        for step in (0.97, 1.03):
            assert likelihood(np.where(shared, step, 1.0)) < likelihood(np.ones(6)) - 1e-5


def test_the_estimator_takes_tables_as_they_are():
    region = "1985-04-01 <= date <= 1985-06-01"
    model = sf.PrivateGPRegressor(region=region, alpha=0.3, noise=0.05, lengthscale=[60.0, 5.0]).fit(CO2, PPM)
    numbers = pd.DataFrame({"date": DAYS, "height": CO2["height"]})
    box = sf.Box({"date": (5569, 5630)})
    plain = sf.PrivateGPRegressor(region=box, alpha=0.3, noise=0.05, lengthscale=[60.0, 5.0]).fit(numbers, PPM)
    assert list(model.feature_names_in_) == ["date", "height"]
    assert np.array_equal(model.release_.noise.covariance(), plain.release_.noise.covariance())
    assert np.array_equal(model.predict(CO2), model.release_.predict(CO2).mean)
    birds = sf.PrivateGPRegressor(region="species = Adelie", alpha=0.3, noise=0.05, lengthscale=2.0).fit(PENGUINS, MASS)
    learnt = sf.PrivateGPRegressor(region="species = Adelie", alpha=0.3, fit_outside=False).fit(PENGUINS, MASS)
    assert str(learnt.prior_) == str(sf.fit_prior(PENGUINS, MASS, progress=False))  # levels share a lengthscale in both
    assert birds.certificate_.holds
    assert birds.predict(PENGUINS.iloc[:2]).shape == (2,)
    with pytest.raises(sf.InputError, match="'mass' is the output, and regions are about inputs"):
        sf.PrivateGPRegressor(region="mass >= 4", alpha=0.3).fit(PENGUINS, MASS)


# ---------------------------------------------------------------- there and back


moments = st.datetimes(pd.Timestamp("1800-01-01").to_pydatetime(), pd.Timestamp("2140-01-01").to_pydatetime())
levels = st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_tables_survive_becoming_numbers(data):
    known = data.draw(levels)
    rows = data.draw(st.integers(1, 6))

    def column(of):
        return data.draw(st.lists(of, min_size=rows, max_size=rows))

    table = pd.DataFrame(
        {
            "when": pd.Series(column(moments), dtype="datetime64[us]"),
            "what": pd.Categorical(column(st.sampled_from(known)), categories=known),
            "size": column(st.floats(-1e6, 1e6)),
        }
    )
    inputs = as_inputs(table)
    back = Encoding.from_tree(inputs.encoding.to_tree()).decode(inputs.values)
    assert list(back["when"]) == list(table["when"])
    assert list(back["what"]) == list(table["what"])
    assert list(back["size"]) == list(table["size"])
    assert np.array_equal(as_inputs(back, like=inputs).values, inputs.values)


days = st.integers(-40, 340).map(lambda day: (pd.Timestamp("1985-01-01") + pd.Timedelta(days=day)).strftime("%Y-%m-%d"))
names = st.sampled_from(["Adelie", "Chinstrap", "Gentoo penguin"])
TOGETHER = pd.concat([CO2.iloc[:ROWS].reset_index(drop=True), PENGUINS.reset_index(drop=True)], axis=1)


@settings(deadline=None, max_examples=60)
@given(days, days, st.lists(names, min_size=1, max_size=3, unique=True), st.booleans())
def test_regions_hold_the_rows_that_pandas_finds(first, last, chosen, either):
    first, last = sorted((first, last))
    listed = ", ".join(f"'{name}'" for name in chosen)
    text = f"{first} <= date <= {last} {'or' if either else 'and'} species in ({listed})"
    dates, species = TOGETHER["date"].between(first, last), TOGETHER["species"].isin(chosen)
    expected = (dates | species) if either else (dates & species)
    inputs = as_inputs(TOGETHER)
    bound = parse_region(text, list(TOGETHER.columns)).on_columns_of(inputs)
    assert np.array_equal(bound.contains(inputs.values), expected)
    assert parse_region(bound.in_words(), list(TOGETHER.columns)).on_columns_of(inputs).contains(
        inputs.values
    ).tolist() == list(expected)


def test_levels_are_said_together_only_where_all_else_is_the_same():
    inputs = as_inputs(TOGETHER)

    def said(text):
        return parse_region(text, list(TOGETHER.columns)).on_columns_of(inputs).in_words()

    numbered = as_inputs(pd.DataFrame({"class": pd.Categorical([1, 2, 3, 1]), "x": np.arange(4.0)}))
    classes = parse_region("class in (1, 3) and x >= 1", ["class", "x"]).on_columns_of(numbered)
    assert classes.in_words() == "class in (1, 3) and x ≥ 1"
    assert classes.contains(numbered.values).tolist() == [False, False, True, True]
    both = "species in (Adelie, Chinstrap) and sex in (male, female)"
    assert said(both) == both
    assert said("species = Adelie or species = Chinstrap") == "species in (Adelie, Chinstrap)"
    apart = said("species = Adelie or species = Chinstrap and height <= 4")
    assert apart == "(species = Adelie) or (height ≤ 4 and species = Chinstrap)"
    some = "(species = Adelie and sex = male) or (species = Adelie and sex = female) or (species = Chinstrap)"
    assert said(some) == some


# ---------------------------------------------------------------- what cannot be meant


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("date >= 1985", "'date', which has dates, with a number; write dates"),
        ("height >= 1985-01-01", "'height', which has numbers, with a date"),
        ("species = Adele", "Did you mean 'Adelie'"),
        ("species >= 2", "it is a category .* as in species = Adelie"),
        ("species < Adelie", "A level of a category has no order: write ="),
        ("date = Adelie", "with 'Adelie', but it has dates"),
        ("species = Adelie and species = Chinstrap", "the region is empty"),
        ("1985-02-30 <= date", "1985-02-30 is no date"),
        ("date <= 1950-01-01", r"outside the data, which have 1985-01-06 ≤ date ≤ .*, species in \(Adelie, "),
        ({"date": ("1985-01-01", 7)}, "give two dates"),
        (sf.Ball([1.0] * 8, 2.0), "some of them are dates or categories"),
    ],
)
def test_a_region_that_cannot_be_meant_is_refused_with_a_sentence(asked, message):
    def bound():
        region = parse_region(asked, list(TOGETHER.columns)) if isinstance(asked, str) else asked
        return (sf.Box(region) if isinstance(region, dict) else region).bind(as_inputs(TOGETHER))

    with pytest.raises(sf.InputError, match=message):
        bound()


def test_columns_that_name_rows_or_have_too_many_texts_are_refused():
    with pytest.raises(sf.InputError, match=r"'name' has another text in each of its 36 rows.*Leave it out"):
        as_inputs(PENGUINS.assign(name=PENGUINS.index))
    with pytest.raises(sf.InputError, match=r"'code' has 60 different texts \(c0, c1, .*at most 50"):
        as_inputs(pd.DataFrame({"code": [f"c{i % 60}" for i in range(200)]}))


def test_dates_come_in_many_forms():
    stamps = CO2["date"]
    forms = [stamps.dt.strftime("%Y-%m-%d"), stamps.dt.date, stamps.dt.to_period("D"), stamps.astype("datetime64[s]")]
    for form in forms:
        assert np.array_equal(as_inputs(pd.DataFrame({"date": form})).values[:, 0], DAYS)
    for alone in (pd.DatetimeIndex(stamps), stamps.to_numpy()):
        assert np.array_equal(as_inputs(alone).values[:, 0], DAYS)
    zoned = as_inputs(pd.DataFrame({"date": stamps.dt.tz_localize("Europe/Rome")}))
    assert np.allclose(zoned.values[:, 0], DAYS - 1 / 24, atol=1 / 24)
    assert zoned.frame()["date"].dt.tz is not None
    assert "UTC" in zoned.in_words(zoned.values[0])
    hours = as_inputs(pd.DataFrame({"t": pd.date_range("2024-05-01", periods=30, freq="h")}))
    assert hours.encoding.columns[0].unit == "hours"
    assert np.allclose(np.diff(hours.values[:, 0]), 1.0)


# ---------------------------------------------------------------- files of others


def _trees():
    good = as_inputs(TOGETHER).encoding.to_tree()

    def changed(place, **entries):
        tree = copy.deepcopy(good)
        tree[place] |= entries
        return tree

    yield from [None, [], {}, "days", [3], [*good[:2], "x"], [{"kind": "number", "name": "a"}], good + good[:1]]
    yield from [changed(0, unit="weeks"), changed(0, utc=1), changed(0, kind="year"), changed(0, name=7)]
    yield from [changed(2, levels=[]), changed(2, levels=["a", "a"]), changed(2, levels=["a"] * 99), changed(2, x=1)]
    yield changed(1, name="species=Adelie")


@pytest.mark.parametrize("tree", list(_trees()))
def test_a_damaged_encoding_is_refused(tree):
    with pytest.raises(sf.FormatError):
        Encoding.from_tree(tree)


@pytest.mark.parametrize(
    "edit",
    [
        lambda tree: tree.update(encoding=tree["encoding"][:1]),
        lambda tree: tree["encoding"].reverse(),
        lambda tree: tree["encoding"][0].update(levels=["Adelie", "Chinstrap"]),
        lambda tree: tree.update(columns=[*tree["columns"][:-1], "tail"]),
    ],
)
def test_a_file_whose_encoding_does_not_fit_is_refused(tmp_path, edit):
    from sfumato.release.container import container, read_container

    table, _, y, reader, asked, _, _ = TASKS["penguins"]
    region = sf.parse_region(asked, list(table.columns))
    path = tmp_path / "birds.sfumato"
    sf.protect(reader, table, region, alpha=0.3, progress=False).release(y, unsafe_seed=1).save(path)
    manifest, tensors = read_container(path, lambda version, manifest, shapes: manifest)
    path.write_bytes(container(manifest, tensors))
    assert sf.load(path).design.inputs.encoding is not None
    edit(manifest)
    path.write_bytes(container(manifest, tensors))
    with pytest.raises(sf.FormatError):
        sf.load(path)


# ---------------------------------------------------------------- rows that are read part after part


def test_dates_in_parquet_files_are_read_part_after_part(tmp_path):
    table = pd.DataFrame({"date": pd.date_range("1990-01-01", periods=40), "x": np.arange(40.0), "kind": "a"})
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=10)
    stored = sf.rows_of_parquet(tmp_path / "rows.parquet", ["date", "x"], rows=16)
    assert len(stored.parts()) > 1
    assert stored.encoding == as_inputs(table[["date", "x"]]).encoding
    assert np.array_equal(stored.values, as_inputs(table[["date", "x"]]).values)
    assert sf.Box({"date": ("1990-01-05", None)}).bind(stored).in_words() == "1990-01-05 ≤ date ≤ 1990-02-09"
    with pytest.raises(sf.InputError, match="Text and categories are inputs of tables that fit in memory"):
        sf.rows_of_parquet(tmp_path / "rows.parquet", ["date", "kind"])


@pytest.mark.parametrize(
    "said",
    [
        {"date": "2020-03-29"},
        {"date": pd.Period("2020-03-29", "D")},
        {"date": ("2020-03-29", "2020-03-29")},
        "date = 2020-03-29",
        {"date": pd.Period("2020-03", "M")},
        {"date": (np.datetime64("2020-03"), np.datetime64("2020-03"))},
    ],
    ids=str,
)
def test_a_day_or_a_month_by_itself_is_all_of_it(said):
    """Its first moment alone would leave the other hours of the secret day unprotected."""
    frame = pd.DataFrame({"date": pd.date_range("2020-02-28", "2020-04-02", freq="7h") + pd.Timedelta("1ns")})
    region = sf.parse_region(said, ["date"]) if isinstance(said, str) else sf.Box(said)
    inputs = as_inputs(frame)
    day = "29" in str(said)
    wanted = frame["date"].dt.strftime("%Y-%m-%d" if day else "%Y-%m") == ("2020-03-29" if day else "2020-03")
    np.testing.assert_array_equal(region.bind(inputs).contains(inputs.values), wanted)


def test_a_number_asks_for_all_levels_that_it_may_mean():
    inputs = as_inputs(pd.DataFrame({"ward": pd.Categorical(["01", "1", "2"])}))
    region = sf.parse_region("ward = 01", ["ward"]).bind(inputs)
    assert region.contains(inputs.values).tolist() == [True, True, False]
    assert region.in_words() == 'ward in ("01", 1)'
