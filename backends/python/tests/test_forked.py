"""A forked child is to its model as a process that was started for it."""

import os
import socket
import sys

import numpy as np
import pytest
from backend_python.child import main as child
from backend_python.system import PORTABLE

SAYS = """
    def execute(self, requests):
        said = eval(requests[0].inputs()[0].as_numpy()[0])
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([str(said).encode()], object))])]
"""


async def said(model, code):
    """Return the value of an expression in the model's process."""
    answer = await model.ask({"x": np.array([code.encode()], object)})
    return answer.output("y").array[0].decode()


@pytest.mark.parametrize(
    "numbers",
    [
        "__import__('random').random()",
        "__import__('numpy.random').random.random()",
        "__import__('numpy.random').random.default_rng().random()",
        "__import__('uuid').uuid4()",
        "__import__('uuid').uuid1()",
        "__import__('secrets').token_hex()",
        "next(__import__('tempfile')._get_candidate_names())",
    ],
)
async def test_no_two_children_draw_the_same_numbers(serve, numbers):
    models = [await serve(SAYS, datatype="BYTES", name=name) for name in ("a", "b", "c")]

    assert len({await said(model, numbers) for model in models}) == 3


def test_random_numbers_that_the_template_had_are_not_the_childs():
    np.random.seed(1)
    before = np.random.get_state()[1].tolist()

    child.draw_own_numbers()

    assert np.random.get_state()[1].tolist() != before


async def test_a_model_may_use_threads_processes_and_temporary_files(serve):
    model = await serve(
        """
    def execute(self, requests):
        import concurrent.futures as futures, multiprocessing, operator, queue, tempfile
        found = []

        box = queue.Queue()
        thread = threading.Thread(target=box.put, args=(1,))
        thread.start()
        found.append(box.get())
        thread.join()
        with futures.ThreadPoolExecutor(2) as pool:
            found.append(sum(pool.map(abs, [-1, 1])))
        for way in ("fork", "spawn"):
            context = multiprocessing.get_context(way)
            with futures.ProcessPoolExecutor(1, context) as pool:
                found.append(pool.submit(operator.add, 1, 2).result())
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "file"), "w") as file:
                found.append(file.write("four"))
        found.append(int(subprocess.run(["echo", "5"], capture_output=True).stdout))
        ones = np.ones((600, 600))
        found.append((ones @ ones).mean() / 100)  # on many threads
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor("y", np.array(found, np.float32))]) for _ in requests]
"""
    )

    for _ in range(2):
        assert await model.y(1) == [1, 2, 3, 3, 4, 5, 6]


async def test_a_child_lives_in_the_surroundings_of_the_server(serve, tmp_path, monkeypatch):
    models = []
    for name in ("a", "b"):  # they may change between two loads
        monkeypatch.setenv("COLOUR", name)
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        models.append(await serve(SAYS, datatype="BYTES", name=name))

    for model, name in zip(models, "ab", strict=True):
        assert await said(model, "os.environ['COLOUR']") == name
        assert await said(model, "os.getcwd()") == str(tmp_path / name)
        assert await said(model, "sys.path[0]") == str(tmp_path / name)
        assert await said(model, "sys.argv") == "['']"
        assert await said(model, "sys.executable") == sys.executable
        assert await said(model, "os.readlink('/proc/self/fd/0')") == "/dev/null"


async def test_neither_template_nor_children_hold_the_servers_sockets(serve, children, templates):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.set_inheritable(True)
        model = await serve(SAYS, datatype="BYTES")
        address = listening.getsockname()

    with socket.create_server(address):  # refused while another process listens
        for pid in templates() + children():
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            # CONTROL or CHANNEL. Portable: in the template STATUS and two for signals, in the child STATUS.
            count = len([link for link in links if link.startswith("socket:")])
            assert count in ((2, 4) if PORTABLE else (1,))
        assert await said(model, "1 + 1") == "2"
