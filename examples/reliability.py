#!/usr/bin/env python3
"""From probes of random simulated cards to a figure: claimed confidence against the share that was right.

Needs only Python 3 and the program. Writes OUT.csv (one row an answer) and OUT.svg.
    examples/reliability.py --cards 1000 --out reliability
"""
import argparse
import concurrent.futures
import csv
import json
import os
import subprocess

# Quantity of a finding and the key of the truth that it is held against.
TRUTH = {
    "erase_block": "erase_block",
    "erase_block_offset": "erase_block_offset",
    "page": "page",
    "access_unit": "access_unit",
    "write_unit": "write_unit",
    "open_aus_linear": "open_aus_linear",
    "open_aus_random": "open_aus_random",
    "capacity": "real_capacity",
}
BINS = [0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.01]


def run(program, *args):
    out = subprocess.run([program, *args], capture_output=True, text=True)
    # 3: nothing was decided; 6 and 7: counterfeit or failing, which random cards may be.
    if out.returncode not in (0, 3, 6, 7):
        raise SystemExit(out.stderr.strip())
    return json.loads(out.stdout)


def card(program, target, run_seed):
    """Rows of one card: quantity, value, whether it is a lower bound, confidence, truth, right."""
    truth = run(program, "cards", "show", target, "--json")["truth"]
    findings = run(program, "probe", target, "-q", "--seed", str(run_seed), "--json", "-")["findings"]
    rows = []
    for f in findings:
        key = TRUTH.get(f["quantity"])
        # Cards mapped by page have no such limit: their truth has no count.
        if key is None or truth.get(key) is None or (key.startswith("open_aus") and truth["mapping"] != "block"):
            continue
        bound = f["value"] is None and f.get("at_least") is not None
        value = f["at_least"] if bound else f["value"]
        if value is None:
            rows.append([target, run_seed, f["quantity"], "", "", 0, truth[key], ""])
            continue
        right = truth[key] >= value if bound else truth[key] == value
        rows.append([target, run_seed, f["quantity"], value, int(bound), f["confidence"], truth[key], int(right)])
    return rows


def figure(answers):
    """Bins of claimed confidence against the share right, with a line where both are the same."""
    side, left, low = 360, 50, 0.5
    x = lambda p: left + (p - low) / (1 - low) * side
    y = lambda p: 20 + side - (p - low) / (1 - low) * side
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + side + 30}" height="{side + 70}" font-family="sans-serif" font-size="12">']
    out.append(f'<line x1="{x(low)}" y1="{y(low)}" x2="{x(1)}" y2="{y(1)}" stroke="#999"/>')
    for p in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        out.append(f'<text x="{x(p)}" y="{side + 38}" text-anchor="middle">{p:.0%}</text><text x="{left - 6}" y="{y(p) + 4}" text-anchor="end">{p:.0%}</text>')
    for a, b in zip(BINS, BINS[1:]):
        here = [r for r in answers if a <= r[5] < b]
        if here:
            claimed, share = sum(r[5] for r in here) / len(here), sum(r[7] for r in here) / len(here)
            error = 1.96 * (share * (1 - share) / len(here)) ** 0.5
            out.append(f'<line x1="{x(claimed)}" y1="{y(max(low, share - error))}" x2="{x(claimed)}" y2="{y(min(1, share + error))}" stroke="#36c"/>')
            out.append(f'<circle cx="{x(claimed)}" cy="{y(max(low, share))}" r="4" fill="#36c"><title>{len(here)} answers</title></circle>')
    out.append(f'<text x="{left + side / 2}" y="{side + 60}" text-anchor="middle">claimed confidence</text>')
    out.append(f'<text transform="translate(14 {20 + side / 2}) rotate(-90)" text-anchor="middle">share right</text></svg>')
    return "\n".join(out) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cards", type=int, default=100)
    p.add_argument("--first", type=int, default=1, help="seed of the first card")
    p.add_argument("--kind", choices=["random", "unusual"], default="random")
    p.add_argument("--program", default="nandscope")
    p.add_argument("--out", default="reliability")
    a = p.parse_args()
    seeds = range(a.first, a.first + a.cards)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = [r for some in pool.map(lambda s: card(a.program, f"sim:{a.kind}?seed={s}", s), seeds) for r in some]
    with open(a.out + ".csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["card", "run_seed", "quantity", "value", "at_least", "confidence", "truth", "right"])
        w.writerows(rows)
    answers = [r for r in rows if r[7] != ""]
    with open(a.out + ".svg", "w") as f:
        f.write(figure(answers))
    right = sum(r[7] for r in answers)
    print(f"{a.cards} cards: {right} of {len(answers)} answers right, {len(rows) - len(answers)} undecided; {a.out}.csv, {a.out}.svg")


if __name__ == "__main__":
    main()
