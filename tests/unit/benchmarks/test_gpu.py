"""python -m benchmarks.backends.gpu, in the parts that need no GPU."""

import pytest

from benchmarks.backends import gpu


def event(kind, name, start, end):
    return {"cat": kind, "name": name, "ts": start, "dur": end - start}


EVENTS = [
    event("kernel", "conv", 0, 10),
    event("kernel", "relu", 5, 12),
    event("kernel", "conv", 20, 30),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 8, 16),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 22, 24),
    event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 12, 20),
    {"name": "process_name", "ph": "M"},
]


@pytest.mark.parametrize(("direction", "share"), [("HtoD", 0.6), ("DtoH", 0.0), ("DtoD", 0.0)])
def test_the_overlap_is_the_time_of_copies_in_which_a_kernel_ran(direction, share):
    assert gpu.overlap(EVENTS, direction) == pytest.approx(share)


def test_without_a_gpu_it_reports_so_and_measures_nothing(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "reason", lambda: "torch finds no GPU that it can use")

    assert gpu.main([]) == 1
    told = capsys.readouterr().err
    assert told == (
        "nothing is measured: torch finds no GPU that it can use; this benchmark needs a GPU\n"
    )


def test_the_network_has_the_shape_of_resnet_50():
    torch = pytest.importorskip("torch")

    with torch.device("meta"):
        network = gpu.network()
        found = network.eval()(torch.ones(2, 3, gpu.SIDE, gpu.SIDE))

    assert found.shape == (2, gpu.CLASSES)
    assert sum(each.numel() for each in network.parameters()) == 25_557_032
