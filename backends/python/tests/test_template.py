"""The process that children are forked from."""

import asyncio
import os
import re
import signal

import pytest
from backend_python import backend
from backend_python.server.process import Process, start
from backend_python.server.settings import Settings
from backend_python.server.template import Template, template
from backend_python.system import PORTABLE

PID = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([os.getpid()], np.float32))]) for _ in requests]
"""


async def pid(model):
    return (await model.y(1))[0]


async def test_all_children_come_from_one_template_which_ends_with_the_last(
    serve, children, templates
):
    model = await serve(PID, "instance_group { count: 3 }")

    assert len(templates()) == 1
    assert len(children()) == 3

    await model.chain.close()
    assert templates() == []


async def test_a_template_that_is_kept_ends_when_it_is_dropped(serve, templates):
    backend.open()
    model = await serve(PID)
    (first,) = templates()
    await model.chain.close()
    assert templates() == [first]

    backend.close()
    assert templates() == []


async def test_children_outlive_their_template_and_the_next_come_from_another(
    serve, children, templates
):
    model = await serve(PID)
    before = await pid(model)

    os.kill(templates()[0], signal.SIGKILL)
    while templates():  # its zombie has no name
        await asyncio.sleep(0.01)
    assert await pid(model) == before

    other = await serve(PID, name="n")
    assert await pid(other) == children()[0]
    assert await pid(model) == before


async def test_a_child_with_a_dead_template_is_replaced_when_it_dies_too(serve, templates):
    model = await serve(PID)
    first = await pid(model)
    os.kill(templates()[0], signal.SIGKILL)
    os.kill(int(first), signal.SIGKILL)

    answers = set()
    while not answers - {first}:  # until the server has noticed
        try:
            answers.add(await pid(model))
        except Exception as error:
            assert "is not healthy" in str(error)

    assert len(templates()) == 1


@pytest.mark.parametrize(
    "ends,status", [("os._exit(7)", 7), ("os.kill(os.getpid(), signal.SIGTERM)", None)], ids=str
)
async def test_how_a_child_ended_is_in_the_log(serve, caplog, ends, status):
    model = await serve(
        f"""
    def execute(self, requests):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        {ends}
"""
    )
    with pytest.raises(Exception, match="is not healthy"):
        await model.y(1)

    while not caplog.messages:
        await asyncio.sleep(0.01)
    ended = f"exit status {status}" if status else "signal 15, SIGTERM"
    assert caplog.messages == [f"Stub process 'm_0' is not healthy. ({ended})"]


def test_a_template_that_does_not_answer_is_logged_and_replaced(templates):
    with pytest.raises(TimeoutError):
        _process(Settings({"stub-timeout-seconds": "1"}), before=signal.SIGSTOP)
    assert template._template is None

    process = _process(Settings({}))
    process.kill()


def _process(settings, before=None):
    template.keep()
    try:
        if before is not None:
            template._template = Template()
            os.kill(template._template._popen.pid, before)
        return Process("m_0", settings)
    finally:
        template.drop()


def test_children_have_no_descriptors_of_each_other():
    first, second = (start("m_0", Settings({})) for _ in range(2))
    try:
        kinds = [
            sorted(
                re.split(r":|-\w+ ", os.readlink(f"/proc/{each.pid}/fd/{fd}"))[0]
                for fd in os.listdir(f"/proc/{each.pid}/fd")
                if int(fd) > 2
            )
            for each in (first, second)
        ]
    finally:
        first.kill()
        second.kill()

    assert kinds[0] == kinds[1]
    assert kinds[0].count("socket") == 1 + PORTABLE  # the channel; the end of the server
