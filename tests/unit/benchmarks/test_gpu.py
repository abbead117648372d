"""python -m benchmarks.gpu, in the parts that need no GPU."""

import json

import pytest

from benchmarks.gpu import __main__ as program
from benchmarks.gpu import page, timeline


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
    assert timeline.overlap(EVENTS, direction) == pytest.approx(share)


def test_copies_are_counted_by_direction():
    assert timeline.copies(EVENTS) == {"HtoD": 2, "DtoD": 0, "DtoH": 1}


def test_without_a_gpu_it_reports_so_and_measures_nothing(monkeypatch, capsys):
    monkeypatch.setattr(program, "reason", lambda: "torch finds no GPU that it can use")

    assert program.main([]) == 1
    assert capsys.readouterr().err == (
        "nothing is measured: torch finds no GPU that it can use; this benchmark needs a GPU\n"
    )


def test_an_unknown_section_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        program.main(["modles"])

    assert "no section 'modles'; choose from models, overlap" in capsys.readouterr().err


def test_the_page_shows_rows_and_errors(tmp_path):
    found = {"section": "chains", "gpu": "H100 <1>", "torch": "2.11", "seconds": 3.2}
    found |= {"rows": [{"chain": "bls", "DtoH": 0, "ratio": 0.9512}], "error": "it ended"}
    (tmp_path / "chains.json").write_text(json.dumps(found))

    page.write(tmp_path)

    text = (tmp_path / "index.html").read_text()
    assert "H100 &lt;1&gt;" in text and "<td>0.951</td>" in text and "it ended" in text


def test_the_networks_have_the_shapes_of_resnet_50_and_bert():
    torch = pytest.importorskip("torch")
    from benchmarks.gpu import networks

    sizes = {}
    with torch.device("meta"):
        for network in networks.NETWORKS:
            module = network.make().eval()
            found = module(
                network.sample(2)
                .to("meta")
                .to(next(module.parameters()).dtype if network.name == "resnet50" else torch.int64)
            )
            sizes[network.name] = (
                tuple(found.shape),
                sum(each.numel() for each in module.parameters()),
            )

    assert sizes["resnet50"] == ((2, networks.CLASSES), 25_557_032)
    assert sizes["encoder"] == ((2, networks.WIDTH), 108_495_360)
