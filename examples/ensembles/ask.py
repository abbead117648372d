"""Asks the ensembles of examples/ensembles/models: python examples/ensembles/ask.py [HOST:PORT]

`root` repeats a step of Newton's method until the cube root does not change any more. `sentiment` asks a slow
model only if a quick one is unsure. The server: core-serve --model-repository=examples/ensembles/models. It
needs only the standard library.
"""

import json
import sys
import time
import urllib.request


def infer(address, model, inputs):
    """Send inputs, name → (datatype, rows); return output → rows."""
    body = {
        "inputs": [
            {"name": name, "datatype": datatype, "shape": [len(rows), 1], "data": rows}
            for name, (datatype, rows) in inputs.items()
        ]
    }
    url = f"http://{address}/v2/models/{model}/infer"
    with urllib.request.urlopen(url, json.dumps(body).encode()) as answer:
        return {each["name"]: each["data"] for each in json.load(answer)["outputs"]}


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "localhost:8000"
    numbers = [8.0, 2.0, 1000.0]
    found = infer(
        address, "root", {"number": ("FP64", numbers), "guess": ("FP64", [1.0, 1.0, 1.0])}
    )
    for number, root in zip(numbers, found["root"], strict=True):
        print(f"the cube root of {number:g} is {root:.9f}")
    for text in ("A great film.", "Not bad.", "Dull and awful.", "Lovely, but not good."):
        begun = time.perf_counter()
        found = infer(address, "sentiment", {"text": ("BYTES", [text])})
        milliseconds = (time.perf_counter() - begun) * 1000
        which = "thorough" if milliseconds > 100 else "quick"
        print(f"{text:22} {found['label'][0]:7} {found['confidence'][0]:.2f}  by the {which} model")


if __name__ == "__main__":
    main()
