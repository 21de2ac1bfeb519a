"""A table's state in the address: sorted, filtered, never SQL."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from roof_collector.web.errors import PageError
from roof_collector.web.tables import Column, Table, TableQuery


@dataclass(frozen=True)
class Thing:
    name: str
    seconds: float | None
    threads: int = 1


TABLE = Table(
    "things", (Column("name", "Name"), Column("seconds", "Time")), searchable=("name", "threads"), size=2
)
THINGS = (Thing("b:1", 2.0), Thing("A", None, 4), Thing("c", 1.0))


def names(query: TableQuery) -> list[str]:
    return [row.name for row in query.apply(TABLE, THINGS).rows]


def test_sorting_keeps_the_unknown_last() -> None:
    assert names(TableQuery(sort="seconds", size=9)) == ["c", "b:1", "A"]
    assert names(TableQuery(sort="-seconds", size=9)) == ["b:1", "c", "A"]
    assert names(TableQuery(sort="name", size=9)) == ["A", "b:1", "c"]


def test_filtering_by_words_and_by_column() -> None:
    assert names(TableQuery(filter="B")) == ["b:1"]
    assert names(TableQuery(filter="threads:4")) == ["A"]
    assert names(TableQuery(filter="threads:1 c")) == ["c"]
    assert names(TableQuery(filter="b:1")) == ["b:1"]
    assert names(TableQuery(filter="nothing")) == []


def test_pages() -> None:
    page = TableQuery(page=2).apply(TABLE, THINGS)
    assert ([row.name for row in page.rows], page.total, page.pages) == (["c"], 3, 2)


def test_the_address_leaves_out_what_is_at_its_default() -> None:
    assert TableQuery(sort="-a b", page=3).address(page=1) == "?sort=-a+b"


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(PageError, match="name, seconds"):
        TableQuery(sort="; drop table run").selection(TABLE)


@pytest.mark.parametrize("page", ["devices", "device", "run", "network"])
@pytest.mark.parametrize(
    "word", ["'", "' OR 1=1 --", "%", "_", "\\", '"; DROP TABLE run; --', "reason:'", "x:y"]
)
def test_sql_in_a_filter_finds_nothing_and_harms_nothing(
    site: Any, seed: ModuleType, page: str, word: str
) -> None:
    address, key = {
        "devices": ("/devices", "devices"),
        "device": (f"/devices/{seed.FINGERPRINT}", "runs"),
        "run": (f"/runs/{seed.RUN_ID}", "measurements"),
        "network": (f"/runs/{seed.RUN_ID}/networks/{seed.NETWORK_SEQ}", "layers"),
    }[page]
    answer = site.client.get(address + ".json", params={"filter": word})
    assert answer.status_code == 200
    texts = str(site.json(address + ".json")[key]["rows"])
    if word not in texts:
        assert answer.json()[key]["total"] == 0
    assert not any(word in statement for statement in site.statements if len(word) > 3)
    assert site.client.get(address, params={"sort": word}).status_code == 400


def test_a_filter_and_a_sort_of_measurements(site: Any, seed: ModuleType) -> None:
    path = f"/runs/{seed.RUN_ID}.json?filter=threads:4+probe:bandwidth&sort=-best"
    table = site.json(path)["measurements"]
    best = [row["best"] for row in table["rows"]]
    assert table["total"] == len(best) == 8
    assert best == sorted(best, reverse=True)
    head = site.client.get(f"/runs/{seed.RUN_ID}?sort=-best").text
    assert head.count('aria-sort="descending"') == 3


def test_a_nul_in_a_filter_is_refused(site: Any) -> None:
    assert site.client.get("/devices?filter=a%00b").status_code == 400
    assert site.client.get("/devices?page=0").status_code == 400
    assert site.client.get("/devices?size=100000").status_code == 400
