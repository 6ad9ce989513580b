#!/usr/bin/env python3
"""Change points by public packages, in histories as `weigh history` has them.

Writes `change_points.tsv` beside it. A test of `crates/stats` puts the columns into METHODOLOGY.md, beside those
of `weigh` for histories that are made in the same way (`crates/stats/tests/simulated_labs/history.rs`).

    python3 -m venv VENV && VENV/bin/pip install ruptures==1.1.10 signal-processing-algorithms==2.1.6
    VENV/bin/python docs/evidence/change_points.py
"""

import math
import pathlib
import random

import numpy
import ruptures
from signal_processing_algorithms.energy_statistics.energy_statistics import e_divisive

RUNS = 100
BEFORE = 80
HISTORIES = 100
# E-divisive tests by permutations, which takes a thousand times as long.
DIVISIVE_HISTORIES = 30
DIVISIVE_EVERY = 5


def history(kind, seed):
    """A history without a change, of variance 1."""
    draw = random.Random(seed)
    before = draw.gauss(0, 1)
    values = []
    for _ in range(RUNS):
        noise = draw.gauss(0, 1)
        if kind == "heavy":
            squares = sum(draw.gauss(0, 1) ** 2 for _ in range(4))
            noise = noise / math.sqrt(squares / 4) / math.sqrt(2)
        elif kind == "hosts":
            noise = (noise + draw.choice([-1, 1])) / math.sqrt(2)
        elif kind == "correlated":
            before = 0.5 * before + math.sqrt(0.75) * noise
            noise = before
        elif kind == "odd" and draw.randrange(12) == 0:
            noise += draw.choice([-10, 10])
        values.append(noise)
    return numpy.array(values)


def pelt(values):
    """Change points by PELT with squared deviations, and the penalty that `weigh` had until 2026-11."""
    apart = numpy.median(numpy.abs(numpy.diff(values))) / 0.6745
    penalty = 3 * math.log(len(values)) * apart * apart / 2
    found = ruptures.Pelt(model="l2", min_size=3, jump=1).fit(values).predict(pen=penalty)
    return found[:-1]


def divisive(values):
    """Change points by E-divisive, at the default significance of the package."""
    return e_divisive(values, pvalue=0.05, permutations=100)


def ever(find, kind, histories, every):
    """Share of the histories in which a change is claimed at any look."""
    claimed = 0
    for seed in range(histories):
        values = history(kind, seed)
        looks = range(6, RUNS + 1, every)
        claimed += any(len(find(values[:runs])) > 0 for runs in looks)
    return claimed / histories


def found(find, deviations, runs, histories):
    """Share of the histories in which a change after the first runs is found within so many more."""
    hits = 0
    for seed in range(histories):
        values = history("normal", seed)
        values[BEFORE:] += deviations
        looks = range(1, runs + 1)
        hits += any(
            any(abs(at - BEFORE) <= 2 for at in find(values[: BEFORE + more])) for more in looks
        )
    return hits / histories


def main():
    """Writes the columns."""
    methods = [
        (f"PELT of ruptures {ruptures.__version__}", pelt, HISTORIES, 1),
        ("E-divisive of signal-processing-algorithms 2.1.6, every fifth run", divisive, DIVISIVE_HISTORIES, DIVISIVE_EVERY),
    ]
    rows = [[name for name, *_ in methods]]
    # In the order of the rows of `weigh`. The errors of runs are no input of these packages.
    for kind in ["normal", "normal", "heavy", "hosts", "correlated", "odd"]:
        rows.append([f"{ever(find, kind, many, every):.0%}".replace("%", " %") for _, find, many, every in methods])
        print(kind, rows[-1], flush=True)
    for deviations in [2, 3]:
        cells = []
        for _, find, many, _ in methods:
            shares = [found(find, deviations, runs, many) for runs in [3, 5, 8]]
            cells.append(", ".join(f"{share:.0%}".replace("%", " %") for share in shares))
        rows.append(cells)
        print(deviations, cells, flush=True)
    table = pathlib.Path(__file__).with_suffix(".tsv")
    table.write_text("".join("\t".join(row) + "\n" for row in rows))


main()
