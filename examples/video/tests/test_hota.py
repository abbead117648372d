"""How well the tracks of the server fit a film that comes over RTSP: hota.py, on a short one."""

import numpy as np
import pytest

pytest.importorskip("backend_image.opencv", reason="backend-image is not installed")
pytest.importorskip("backend_tracker", reason="backend-tracker is not installed")
pytest.importorskip("backend_video", reason="backend-video is not installed")
pytest.importorskip("trackeval", reason="trackeval is not installed")


def test_tracks_of_a_film_over_rtsp_have_a_hota_of_98_percent(tmp_path):
    import hota
    import make_film

    file = tmp_path / "film.mp4"
    truth = make_film.render(file, seconds=4)

    tracks = hota.tracked(file, len(truth), tmp_path)

    found = hota.scores([np.array(each) for each in truth], tracks)
    assert found["HOTA"] >= 0.98, found
