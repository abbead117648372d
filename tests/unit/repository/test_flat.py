"""Folders for MLServer: model-settings.json, and no folders of versions."""


def test_the_folder_of_the_model_is_its_version_1(folder, catalog):
    write(folder.path / "m" / "model-settings.json")

    source = catalog.survey("m")

    assert source.config.backend == "python"
    assert list(source.versions) == [1]
    assert source.path(1) == folder.path / "m"


def test_a_change_of_any_file_is_a_change_of_the_version(folder, catalog):
    write(folder.path / "m" / "model-settings.json")
    before = catalog.survey("m").versions

    write(folder.path / "m" / "model.joblib")

    assert catalog.survey("m").versions != before


def test_folders_of_versions_are_the_versions(folder, catalog):
    write(folder.path / "m" / "model-settings.json")
    (folder.path / "m" / "7").mkdir()

    source = catalog.survey("m")

    assert source.config.backend == "python"
    assert list(source.versions) == [7]
    assert source.path(7) == folder.path / "m" / "7"


def test_a_name_with_a_backend_in_it_goes_before_files(folder, catalog):
    write(folder.path / "m.fil" / "1" / "model.json")

    assert catalog.survey("m.fil").config.backend == "fil"


def test_files_known_to_triton_take_precedence(folder, catalog):
    write(folder.path / "m" / "1" / "model.onnx")
    write(folder.path / "m" / "1" / "model.joblib")

    assert catalog.survey("m").config.backend == "onnxruntime"


def write(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")
