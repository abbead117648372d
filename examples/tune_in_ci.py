"""Fail if a model has better settings than those in its config.pbtxt.

    python examples/tune_in_ci.py models/digits p99=20ms

More arguments are those of `core tune`. The exit status is 1 if other settings serve at least 10 % more
requests within the objective.
"""

import json
import subprocess
import sys

BETTER = 1.1


def main(model, objective, *flags):
    command = [sys.executable, "-m", "core", "tune", model, "--slo", objective, *flags]
    done = subprocess.run([*command, "--json", "-"], stdout=subprocess.PIPE, text=True)
    if not done.stdout:
        return done.returncode
    found = json.loads(done.stdout)
    if found["best"] is None:
        print(f"{model}: no settings keep {objective}")
        return 1
    rates = {settings_of(each): each["requests_per_s"] for each in found["settings"]}
    gain = rates[settings_of(found["best"])] / rates[settings_of(found["now"])]
    print(f"{model}: the best settings serve {gain:.2f} times as many requests")
    if gain < BETTER:
        return 0
    print(found["difference"])
    return 1


def settings_of(each):
    return each["instances"], each["batch"], each["delay_us"]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
