#!/usr/bin/env python3
"""Facts of many cards as a table, with pandas or DuckDB.

    for r in *.json; do nandscope report "$r" --format jsonl; done > facts.jsonl
    facts.py pandas facts.jsonl
    facts.py duckdb facts.jsonl

Prints the erase block of each card and its confidence, in the order of the cards.
"""
import sys


def with_pandas(path):
    import pandas

    facts = pandas.read_json(path, lines=True)
    blocks = facts[(facts["group"] == "finding") & (facts["name"] == "erase_block")].dropna(subset="value")
    for row in blocks.sort_values("card").itertuples():
        print(f"{row.card}  {int(row.value)} {row.unit}  {row.confidence:.2f}")


def with_duckdb(path):
    import duckdb

    rows = duckdb.sql(
        f"""select card, value, unit, confidence from read_json('{path}', format = 'newline_delimited')
        where "group" = 'finding' and name = 'erase_block' and value is not null order by card"""
    )
    for card, value, unit, confidence in rows.fetchall():
        print(f"{card}  {int(value)} {unit}  {confidence:.2f}")


if __name__ == "__main__":
    {"pandas": with_pandas, "duckdb": with_duckdb}[sys.argv[1]](sys.argv[2])
