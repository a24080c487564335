#!/usr/bin/env python3
"""What `nandscope survey export --parquet DIR` writes, with DuckDB or pandas.

    parquet.py duckdb DIR
    parquet.py pandas DIR

Prints the erase block of each card with its confidence, then how many accesses of each experiment there are and the longest of them in ms.
"""
import sys


def with_duckdb(directory):
    import duckdb

    blocks = duckdb.sql(
        f"""select name, value, confidence from '{directory}/values.parquet'
        where quantity = 'erase_block' and state = 'decided' order by name"""
    )
    for name, value, confidence in blocks.fetchall():
        print(f"{name}  {int(value)}  {confidence:.2f}")
    longest = duckdb.sql(
        f"""select experiment, count(*), max(took_ns) / 1e6 from '{directory}/samples.parquet' group by experiment order by experiment"""
    )
    for experiment, n, ms in longest.fetchall():
        print(f"{experiment}  {n}  {ms:.1f}")


def with_pandas(directory):
    import pandas

    values = pandas.read_parquet(f"{directory}/values.parquet")
    blocks = values[(values["quantity"] == "erase_block") & (values["state"] == "decided")]
    for row in blocks.sort_values("name").itertuples():
        print(f"{row.name}  {int(row.value)}  {row.confidence:.2f}")
    samples = pandas.read_parquet(f"{directory}/samples.parquet")
    for experiment, took in samples.groupby("experiment")["took_ns"]:
        print(f"{experiment}  {len(took)}  {took.max() / 1e6:.1f}")


if __name__ == "__main__":
    {"duckdb": with_duckdb, "pandas": with_pandas}[sys.argv[1]](sys.argv[2])
