"""The linear model with nothing but the standard library: python plain_http.py [ADDRESS]

Data are nested lists, as a person writes them; flat lists do as well. The server does not look at the
content type, so a header with a misspelled name, as in many published scripts, is no harm.
"""

import json
import sys
import urllib.request

EXERCISES = [[5, 162, 60], [2, 110, 60], [12, 101, 101]]  # chin-ups, sit-ups, jumps
MEASURED = [[191, 36, 50], [189, 37, 52], [193, 38, 58]]  # weight, waist, pulse of those people


def main(address="localhost:8000"):
    request = {
        "inputs": [
            {"name": "exercises", "shape": [3, 3], "datatype": "FP32", "data": EXERCISES},
        ]
    }

    answer = post(f"http://{address}/v2/models/linear/infer", request)

    assert (answer["model_name"], answer["model_version"]) == ("linear", "1")
    (output,) = answer["outputs"]
    flat = output["data"]
    for i, measured in enumerate(MEASURED):
        served = [round(value, 1) for value in flat[3 * i : 3 * i + 3]]
        print(f"measured {measured}: served {served}")


def post(url, body):
    headers = {"Content_Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
