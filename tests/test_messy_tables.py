"""Three messy tables: what they hold is what was meant, by pandas alone and by every command."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0.tables.messy import TARGETS, clean_tables, make_messy_tables

pd = pytest.importorskip("pandas", reason="tables need pandas")


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    return make_messy_tables(tmp_path_factory.mktemp("messy"))


def by_hand(paths):
    """The files as a person who knows them reads them with pandas."""
    patients = pd.read_csv(
        paths["patients.csv"], sep=";", decimal=",", thousands=".", encoding="cp1252",
        na_values=["k. A."], dtype={"visit": str},
    )  # fmt: skip
    patients["visit"] = pd.to_datetime(patients["visit"], format="%d.%m.%Y")
    wines = pd.read_csv(paths["wines.csv"], encoding="utf-8-sig", thousands=",")
    wines["bottled"] = pd.to_datetime(wines["bottled"], format="%m/%d/%Y")
    wines["alcohol"] = wines["alcohol"].str.rstrip("%").astype(float)
    wines["tone"] = wines["tone"].str.replace(r"\((.*)\)", r"-\1", regex=True).astype(float)
    wines["price"] = wines["price"].str.replace("[$,]", "", regex=True).astype(float)
    tumours = pd.read_csv(paths["tumours.txt"], sep="\t", encoding="utf-16")
    tumours["taken"] = pd.to_datetime(tumours["taken"].astype(str), format="%Y%m%d")
    tumours["symmetry"] = tumours["symmetry"].str.replace("\u2212", "-").astype(float)
    for name in ("area", "perimeter"):
        tumours[name] = tumours[name].str.replace("[\u00a0']", "", regex=True).astype(float)
    return {"patients.csv": patients, "wines.csv": wines, "tumours.txt": tumours}


def test_what_is_written_is_what_was_meant(messy):
    clean = clean_tables()
    assert clean.keys() == TARGETS.keys() == messy.keys()
    for name, read in by_hand(messy).items():
        meant = clean[name]
        assert list(read) == list(meant) and TARGETS[name] in meant
        for column in meant:
            if meant[column].dtype.kind in "fiM":
                np.testing.assert_array_equal(read[column], meant[column], f"{name} {column}")
            else:
                has_text = meant[column].notna()
                assert (read[column].notna() == has_text).all()
                # lines end as on Windows inside quotes as well, or do not
                texts = read[column][has_text].str.replace("\r\n", "\n")
                assert (texts == meant[column][has_text]).all()
