#!/usr/bin/env python3
"""A sweep on a Dask cluster: each task does one shard.

    sweep.py PLAN.toml DIR --shards 100 --scheduler tcp://host:8786

Without --scheduler it begins a cluster of processes on this machine. DIR is on a disk that all workers see.
A shard that was done, or done in part, goes on where it stopped.
"""
import argparse
import os
import subprocess


def shard(program, plan, directory, i, n):
    command = [program, "sweep", plan, "-o", directory, "--quiet", "--threads", "1", "--shard", f"{i}/{n}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("plan")
    p.add_argument("directory")
    p.add_argument("--shards", type=int, default=os.cpu_count())
    p.add_argument("--scheduler")
    p.add_argument("--workers", type=int, default=os.cpu_count())
    a = p.parse_args()
    from dask.distributed import Client, LocalCluster

    program = os.environ.get("NANDSCOPE", "nandscope")
    cluster = None if a.scheduler else LocalCluster(n_workers=a.workers, threads_per_worker=1, dashboard_address=None)
    with Client(a.scheduler or cluster) as client:
        tasks = [client.submit(shard, program, a.plan, a.directory, i, a.shards, pure=False) for i in range(1, a.shards + 1)]
        for line in client.gather(tasks):
            print(line)
    if cluster:
        cluster.close()
    print(subprocess.run([program, "sweep", "merge", a.directory], check=True, capture_output=True, text=True).stdout, end="")


if __name__ == "__main__":
    main()
