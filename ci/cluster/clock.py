"""runc for a node whose clocks differ from those of the machine: clock.py FILE LIBRARY [ARGUMENT OF RUNC ...]

FILE has the seconds by which the wall clock of new containers is ahead. They load LIBRARY (clock.c) for it.
CLOCK_MONOTONIC has an offset too, by a time namespace, because no two machines start at the same moment.
"""

import json
import os
import sys
from decimal import Decimal

STARTED_EARLIER_S = 1000
INSIDE = "/clock.so"


def plant(bundle, library, ahead_ns):
    path = os.path.join(bundle, "config.json")
    with open(path) as file:
        config = json.load(file)
    config["process"].setdefault("env", []).extend([f"LD_PRELOAD={INSIDE}", f"CLOCK_AHEAD_NS={ahead_ns}"])
    mount = {"destination": INSIDE, "type": "bind", "source": library, "options": ["bind", "ro"]}
    config.setdefault("mounts", []).append(mount)
    with open(path, "w") as file:
        json.dump(config, file)


def main():
    file, library, *arguments = sys.argv[1:]
    if "create" not in arguments:
        os.execvp("runc", ["runc", *arguments])
    with open(file) as text:
        ahead_ns = int(Decimal(text.read().strip()) * 1_000_000_000)
    plant(arguments[arguments.index("--bundle") + 1], library, ahead_ns)
    unshare = ["unshare", "--time", "--monotonic", str(STARTED_EARLIER_S), "--fork"]
    os.execvp(unshare[0], [*unshare, "runc", *arguments])


main()
