"""Tensors of models in child processes: their places and their release. The GPU is played."""

import gc
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import played_gpu
import pytest
from core_testing import leftovers
from gpu_models import FREE, TWICE, X

import core
from core.devices import dlpack
from core.request import DeviceOutput, RequestedOutput
from frontends.shared.memory.cuda import DeviceRegion, DeviceStatus


def test_between_steps_in_two_processes_a_tensor_stays_on_the_gpu(models, log):
    found = models.infer("both", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2 + 100)  # the second step found it there
    assert log()["to host"] == log(models.pid("other"))["to host"] == 1  # for the client
    assert log(os.getpid())["opened"] == 0  # the server has only passed it on
    assert log(models.pid("other"))["opened"] == 1


def test_a_process_gets_its_own_memory_back(models, log):
    found = models.infer("again", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2 + 100)
    assert log()["to host"] == 1 and log()["opened"] == 0


def test_all_memory_is_released_with_the_response(models, log):
    for _ in range(3):
        models.infer("both", {"x": X})

    assert leftovers.settles(lambda: models.lent("twice") == models.lent("other") == (0, 0))
    assert leftovers.settles(lambda: log(models.pid("twice"))["freed"] == 3)
    assert log()["opened"] == log()["closed"] == 3


@pytest.mark.parametrize("mode", ["process", "shared"])
def test_one_worker_for_both_steps_is_no_obstacle(serve, log, mode):
    more = f'{FREE} parameters {{ key: "EXECUTION_MODE" value {{ string_value: "{mode}" }} }}'
    models = serve(both=("one", "two"), one=(TWICE, more), two=(TWICE, more))

    found = models.infer("both", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2 + 100) and log()["to host"] == 1


def test_children_with_an_interpreter_of_their_own_do_the_same(serve, log):
    own = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{sys.executable}" }} }}'
    models = serve(both=("own", "twice"), own=(TWICE, FREE + own))

    found = models.infer("both", {"x": X}, outputs=[DeviceOutput("z")])

    assert np.array_equal(found.tensor("z").array, (X * 2) * 2 + 100)
    assert log(models.pid("own"))["to host"] == log(models.pid("twice"))["to host"] == 0


def test_a_step_in_the_servers_process_takes_memory_of_a_child(models, log):
    found = models.infer("to_here", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2 + 100)
    assert log(os.getpid())["opened"] == 1 and log()["to host"] == 1


def test_a_child_takes_memory_of_a_step_in_the_servers_process(models, log):
    found = models.infer("from_here", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2 + 100)
    assert log(models.pid("twice"))["opened"] == 1 and log()["to host"] == 1
    assert leftovers.settles(lambda: models.lent("twice") == (0, 0))


def test_a_model_that_forces_its_inputs_gets_them_on_the_host(models, log):
    found = models.infer("to_forced", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2)
    assert log()["opened"] == 0 and log(models.pid("twice"))["to host"] == 1


def test_a_client_alone_needs_no_loan(models, log):
    assert np.array_equal(models.infer("twice", {"x": X})["y"], X * 2)
    assert log(os.getpid()) == {} and log(models.pid("twice"))["to host"] == 1


def test_a_tensor_that_is_handed_on_unseen_is_not_opened(models, log):
    found = models.infer("to_same", {"x": X}, outputs=[DeviceOutput("z")])

    assert found.tensor("z").device == (dlpack.CUDA, 0)
    assert log()["opened"] == log()["to host"] == 0
    assert np.array_equal(found.tensor("z").array, X * 2)
    assert log(os.getpid())["to host"] == 1


def test_a_view_of_lent_memory_has_the_same_handle(models, log):
    found = models.infer("to_view", {"x": X}, outputs=[DeviceOutput("z")])

    assert np.array_equal(found.tensor("z").array, X * 2)
    assert log()["allocated"] == 0


def test_an_output_that_is_also_wanted_in_host_memory_comes_both_ways(models, log):
    found = models.infer("twice", {"x": X}, outputs=[DeviceOutput("y", host=True)]).tensor("y")

    assert found.device == (dlpack.CUDA, 0) and np.array_equal(found.array, X * 2)
    assert log(os.getpid())["to host"] == 0 and log(models.pid("twice"))["to host"] == 1


def test_rows_of_requests_that_share_a_batch_stay_apart(models, log):
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(models.infer, "both", {"x": X + i}) for i in range(4)]
        found = [each.result()["z"] for each in asked]

    assert [each[0, 0] for each in found] == [(1 + i) * 4 + 100 for i in range(4)]
    assert log()["to host"] == 4


class Given:
    """An array of a program on the GPU."""

    def __init__(self, values, **how):
        self.shape, self.dtype = values.shape, values.dtype
        self._values, self._how = values, how

    def __dlpack_device__(self):
        return dlpack.CUDA, 0

    def __dlpack__(self, **_):
        return played_gpu.array(self._values, **self._how)


def test_an_input_of_a_program_reaches_a_child_without_a_copy(models, log):
    found = models.infer("twice", {"x": Given(X)})["y"]

    assert np.array_equal(found, X * 2 + 100)
    assert log()["to host"] == 1 and log()["allocated"] == 0


def test_memory_that_cannot_be_opened_elsewhere_is_copied_on_the_gpu(serve, log, caplog):
    models = serve()

    for _ in range(2):
        found = models.infer("twice", {"x": Given(X, shareable=False)})["y"]
        assert np.array_equal(found, X * 2 + 100)

    assert log(os.getpid())["copied there"] == log(os.getpid())["allocated"] == 2
    assert log(os.getpid())["to host"] == 0
    said = [each.message for each in caplog.records if "are copied there" in each.message]
    assert len(said) == 1 and said[0].startswith("'twice_0_0': tensors on GPU 0 are copied there")
    assert leftovers.settles(lambda: log(os.getpid())["freed"] == 4)  # and what Given has made


def test_so_it_is_in_a_child(serve, log, caplog):
    private = TWICE.replace('on_gpu("y", ', 'on_gpu("y", shareable=False, values=')
    models = serve(both=("private", "twice"), private=private)

    for _ in range(2):
        assert np.array_equal(models.infer("both", {"x": X})["z"], (X * 2) * 2 + 100)

    assert log(models.pid("private"))["copied there"] == 2 and log()["to host"] == 2
    assert sum("are copied there" in each.message for each in caplog.records) == 1
    assert leftovers.settles(lambda: log(models.pid("private"))["freed"] == 4)


def test_where_not_even_a_copy_can_be_opened_it_goes_by_way_of_the_host(serve, log, caplog):
    private = """
    def execute(self, requests):
        played_gpu.install(lambda module, name, _: name == "shareable" and setattr(
            module, name, lambda *_: None))
    """
    models = serve(both=("private", "twice"), private=private + TWICE.split("\n", 2)[2])

    for _ in range(2):
        assert np.array_equal(models.infer("both", {"x": X})["z"], (X * 2) * 2)

    assert log(models.pid("private"))["to host"] == 2
    assert log(models.pid("private"))["allocated"] == 1  # it is not tried again
    assert sum("by way of host memory" in each.message for each in caplog.records) == 1


def test_an_output_goes_into_the_memory_of_a_client_on_the_gpu(models, log, monkeypatch):
    copied = []

    class Runtime:
        def between(self, target, target_device, source, source_device, size):
            copied.append(played_gpu.bytes_at(source, size).view(np.float32).tolist())

        def close(self, address, device):
            pass

    region = DeviceRegion(DeviceStatus("r", 0, 12), 4096, Runtime())
    wanted = RequestedOutput("y", memory=region.view(0, 12))
    models.infer("twice", {"x": X}, outputs=[wanted])

    assert copied == [[2.0, 4.0, 6.0]] and log()["to host"] == 0
    assert log(os.getpid())["opened"] == 1


def test_a_tensor_of_a_dead_model_raises_an_error(serve, log):
    models = serve()
    held = models.infer("twice", {"x": X}, outputs=[DeviceOutput("y")])

    first = models.pid("twice")
    os.kill(first, signal.SIGKILL)

    assert leftovers.settles(lambda: models.pid("twice") != first)
    assert np.array_equal(models.infer("twice", {"x": X})["y"], X * 2)  # by the next one
    with pytest.raises(core.CoreError, match="memory of 'twice_0_0', whose process has ended"):
        _ = held.tensor("y").array


def test_a_child_that_dies_holds_nothing_any_more(serve, log):
    dies = """
    def execute(self, requests):
        self.kept = getattr(self, "kept", []) + list(map(x_of, requests))
        look(self.kept[-1])
        if len(self.kept) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return [respond(on_gpu("y", look(x))) for x in map(x_of, requests)]
    """
    models = serve(both=("twice", "dies"), dies=dies)

    assert np.array_equal(models.infer("both", {"x": X})["z"], X * 2)
    assert models.lent("twice") == (0, 1)  # the other model has kept it
    with pytest.raises(core.CoreError, match="not healthy"):
        models.infer("both", {"x": X})

    assert leftovers.settles(lambda: models.lent("twice") == (0, 0))
    assert leftovers.settles(lambda: log(models.pid("twice"))["freed"] == 2)


def test_memory_released_by_a_program_is_freed_at_once(models, log):
    held = models.infer("twice", {"x": X}, outputs=[DeviceOutput("y")])
    assert models.lent("twice") == (0, 1) and log()["freed"] == 0

    del held
    gc.collect()

    assert leftovers.settles(lambda: log(models.pid("twice"))["freed"] == 1)


def test_memory_released_by_a_model_after_its_response_is_freed_at_once(serve, log):
    keeps = """
    def execute(self, requests):
        kept = list(map(x_of, requests))
        def let_go():
            while not os.path.exists(os.environ["PLAYED_GPU_LOG"] + ".now"):
                pass
            kept.clear()
        threading.Thread(target=let_go).start()
        return [respond(pb_utils.Tensor("y", np.ones((1, 3), np.float32))) for _ in requests]
    """
    models = serve(both=("twice", "keeps"), keeps=keeps)
    models.infer("both", {"x": X})
    assert models.lent("twice") == (0, 1)

    open(os.environ["PLAYED_GPU_LOG"] + ".now", "w").close()

    assert leftovers.settles(lambda: log(models.pid("twice"))["freed"] == 1)


def test_answers_of_a_decoupled_model_stay_on_the_gpu(models, log):
    found = [each["z"][0, 0] for each in models.serving.stream("stream", {"x": X})]

    assert found == [(1 + i) * 2 + 100 for i in range(3)]
    assert log()["to host"] == 3 == log(models.pid("twice"))["to host"]
    gc.collect()  # an ensemble with decoupled steps lies in a circle
    assert leftovers.settles(lambda: models.lent("many") == models.lent("twice") == (0, 0))
    assert leftovers.settles(lambda: log(models.pid("many"))["freed"] == 3)
