"""Several files as one job: python examples/job_of_files.py

Serves a function, uploads three files in one form, waits, and prints what each of them got. It needs
`pip install --find-links wheels 'core[jobs]'`.
"""

import asyncio
import io
import json
import tempfile

import aiohttp
import numpy as np

import core

ROOT = {"inputs": {"x": ("FP32", [1])}, "outputs": {"root": ("FP32", [1])}}


def npy(*values):
    """Return the bytes of an .npy file; each row of its array becomes a request."""
    file = io.BytesIO()
    np.save(file, np.array(values, np.float32).reshape(-1, 1))
    return file.getvalue()


async def upload(url):
    form = aiohttp.FormData()
    form.add_field("file", npy(1, 4, 9), filename="squares.npy")
    form.add_field("file", b'{"x": [2]}\n{"x": [3]}\n', filename="lines.jsonl")
    form.add_field("file", b'{"x": ["four"]}\n', filename="wrong.jsonl")
    async with aiohttp.ClientSession(url) as session:
        async with session.post("/v2/models/root/jobs/files", data=form) as answer:
            job = await answer.json()
        async with session.get(f"/v2/jobs/{job['id']}?wait=30") as answer:
            job = await answer.json()
        print(f"{job['state']}:", job["requests"])
        async with session.get(f"/v2/jobs/{job['id']}/files") as answer:
            for each in (await answer.json())["files"]:
                print(f"{each['file']}: {each['requests']['succeeded']} succeeded")
        async with session.get(f"/v2/jobs/{job['id']}/results?file=squares.npy") as answer:
            for line in map(json.loads, (await answer.read()).splitlines()):
                print(f"{line['source']}: {line['response']['outputs'][0]['data']}")


def main():
    with tempfile.TemporaryDirectory() as folder, core.Server(jobs_folder=folder) as server:
        server.bind("root", lambda x: {"root": np.sqrt(x)}, **ROOT)
        asyncio.run(upload(f"http://127.0.0.1:{server.serve(http_port=0)['http']}"))


if __name__ == "__main__":
    main()
