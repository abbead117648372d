"""Check one model: its folder, its config.pbtxt, its versions and the files that it names.

folder ─► [check_model] ─► CheckedModel.  Nothing is loaded, and no code of the model runs.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

from core import plugins
from core.backend import Backend
from core.config import ModelConfig, Signature, normalise, signature_of
from core.config.validation import violations
from core.errors import CoreError
from core.lifecycle import policy
from core.lifecycle.parameters import warn_of_slips
from core.pipeline.batching.rule import warn_of_library
from core.repository import FolderRepository, ModelSource
from core.repository.reading import read_folder
from frontends.commands.check.data_files import check_data_files
from frontends.commands.check.finding import Finding, Report
from frontends.commands.check.mending import replace_value
from frontends.commands.check.migration import notes_of
from frontends.commands.check.parameters import check_parameters
from frontends.commands.check.parsing import certain, parsed
from frontends.commands.check.places.paths import place_in
from frontends.commands.check.places.tree import Tree, tree_of
from frontends.commands.check.rules import broken_rules, check_rates, without_labels_and_states
from frontends.commands.check.settings import Place, Settings, one_line
from frontends.commands.check.tree_of_files import files_of, read_text
from frontends.commands.check.versions import check_of, completed
from frontends.commands.check.warnings_of import warnings_of


@dataclass
class CheckedModel:
    """What a check knows of a model.

    report       its findings
    tree         of its config.pbtxt
    source       None with `outside`, if its folder or its config.pbtxt cannot be read, if core refuses them,
                 and if repository agents may change them
    versions     those that its version policy selects
    signatures   version → inputs and outputs; None with errors, and where only a load can tell
    config       of the newest version, completed as far as it can be without a load; None if unknown
    outside      whether its folder is a link out of the repository: nothing of it is read
    """

    report: Report
    tree: Tree
    source: ModelSource | None = None
    versions: list[int] = field(default_factory=list)
    signatures: dict[int, Signature | None] = field(default_factory=dict)
    config: ModelConfig | None = None
    outside: bool = False

    @property
    def fails(self) -> bool:
        return self.report.count("error") > 0


class _Surveyed(FolderRepository):
    """One model's folder, as the check has read it: core makes the ModelSource of it."""

    def __init__(self, folder: Path, listing: dict[str, str], text: str):
        super().__init__(str(folder.parent))
        self._listing, self._text = listing, text

    def listing(self, name: str) -> dict[str, str]:
        return self._listing

    def read_text(self, name: str, path: str) -> str:
        return self._text


def check_model(folder: Path, root: Path, settings: Settings) -> CheckedModel:
    """Check a model; return what is known of it. Its `report` gets the findings.

    folder   of the model
    root     the repository; links must not leave it
    """
    report = Report(folder.name, folder)
    files = files_of(folder, root, settings.allowed)
    for found in files.findings:
        report.add(found)
    model = CheckedModel(report, tree_of(""), outside=files.outside)
    if files.outside:
        return model
    config = _config(model, files.listing, settings)
    for found in notes_of(
        folder.name, files.listing, config, Place(report, model.tree, config or ModelConfig())
    ):
        report.add(found)
    if config is None:
        return model
    place = Place(report, model.tree, config)
    if config.model_repository_agents.agents:
        broken_rules(config, place, settings)
        names = ", ".join(each.name for each in config.model_repository_agents.agents)
        text = f"the repository agents {names} may change the files: only a load can check them"
        report.add(place.finding("note", "unchecked", text, "model_repository_agents"))
        return model
    _name_backend(config, place, settings)
    try:
        text = str(config) if report.config_file is not None else ""
        if report.config_file is None:
            files.listing.pop("config.pbtxt", None)
        model.source = read_folder(
            _Surveyed(folder, files.listing, text),
            folder.name,
            files.listing,
            settings.options.model_config_name,
            settings.options.disable_auto_complete_config,
        )
    except CoreError as error:
        report.add(place.error(error, "backend" if "backend" in error.message else "layout"))
        return model
    _versions(model, place)
    _check_source(model, settings)
    return model


# config.pbtxt ------------------------------------------------------------------------------------


def _config(model: CheckedModel, listing: dict[str, str], settings: Settings) -> ModelConfig | None:
    """Return the parsed configuration: an empty one without a file, None if the file cannot be read.

    That includes a file that cannot be parsed.

    Report what is wrong with its text; set the tree of the model, and the file and text of its report.
    A `name` other than that of the folder is an error, and the returned configuration has the folder's.
    """
    report, name = model.report, settings.options.model_config_name
    path = f"configs/{name}.pbtxt"
    if not name or path not in listing:
        path = "config.pbtxt"
    if path not in listing:
        if f"{path}/" in listing:
            text = f"'{path}' is a folder, so the model has no configuration; make it a file"
            report.add(Finding("warning", "layout", text, report.folder))
        return ModelConfig()
    file = report.folder / path
    try:
        report.config_text = read_text(file)
    except ValueError as error:
        report.add(Finding("error", "syntax", str(error), file, 1, 1))
        return None
    report.config_file = file
    found = parsed(report.config_text, file)
    model.tree = found.tree
    for each in found.findings:
        report.add(each)
    if found.config is None:
        return None
    _name(found.config, Place(report, found.tree, found.config))
    return found.config


def _name(config: ModelConfig, place: Place) -> None:
    folder = place.report.name
    if not config.name or config.name == folder:
        return
    text = (
        f"unexpected directory name '{folder}' for model '{config.name}', directory name must equal "
        "model name"
    )
    entry = next((each for each in place.tree.fields if each.name == "name"), None)
    edit = replace_value(entry, f'"{folder}"') if entry is not None else None
    place.report.add(place.finding("error", "name", text, "name", edit))
    config.name = folder


# Versions ----------------------------------------------------------------------------------------


def _versions(model: CheckedModel, place: Place) -> None:
    source = model.source
    assert source is not None
    model.versions = sorted(policy.wanted_versions(source.config, source.versions))
    there = ", ".join(map(str, sorted(source.versions)))
    if not source.versions:
        text = f"no version: the model has no folder such as 1{source.hint}"
        place.report.add(place.finding("error", "layout", text))
    elif not model.versions:
        text = f"the version policy selects none of the versions that are there: {there}"
        place.report.add(place.finding("error", "version", text, "version_policy"))
    elif missing := sorted(
        set(source.config.version_policy.specific.versions) - set(source.versions)
    ):
        text = f"the version policy names {', '.join(map(str, missing))}; there are {there}"
        place.report.add(place.finding("warning", "version", text, "version_policy"))


def _check_source(model: CheckedModel, settings: Settings) -> None:
    assert model.source is not None
    config = model.source.config
    place = Place(model.report, model.tree, config)
    check_parameters(config, place)
    if config.HasField("ensemble_scheduling"):
        settled = deepcopy(config)
        normalise(settled, {}, settings.gpus)
        _settle(model, settled, place, settings, None)
        return
    failed = False
    for error in violations(config, settings.formats, None):
        failed = True
        place.report.add(place.error(error, "configuration"))
    backend = _backend(config, place, settings)
    if backend is None or failed:
        broken_rules(config, place, settings)
        return
    for version in model.versions:
        _check_version(model, version, backend, settings)


def _name_backend(config: ModelConfig, place: Place, settings: Settings) -> None:
    """Report a misspelt backend, and set `config.backend` to the one that the name certainly means.

    Do nothing if none is certain.
    """
    folder = settings.options.backend_directory
    if not config.backend or plugins.is_there(config.backend, folder):
        return
    entry = next((each for each in place.tree.fields if each.name == "backend"), None)
    near = certain(config.backend, plugins.available_backends())
    if not near or entry is None:
        return  # the search for the backend reports it
    try:
        plugins.backend(config.backend, folder)
    except CoreError as error:
        edit = replace_value(entry, f'"{near}"')
        place.report.add(
            place.finding("error", "backend", one_line(error.message), "backend", edit)
        )
        config.backend = near


def _backend(config: ModelConfig, place: Place, settings: Settings) -> Backend | None:
    if not config.backend:
        return None
    try:
        return plugins.backend(config.backend, settings.options.backend_directory)
    except CoreError as error:
        text = one_line(error.message)
        place.report.add(place.finding("error", "backend", text, "backend"))
        return None


def _check_version(model: CheckedModel, version: int, backend: Backend, settings: Settings) -> None:
    assert model.source is not None
    config, path = deepcopy(model.source.config), model.source.path(version)
    if (file := plugins.file_of(backend)) is not None and not config.runtime:
        config.runtime = file.name
    place = Place(model.report, model.tree, deepcopy(config))
    with warnings_of() as warned:
        whole = _complete(config, path, backend, place, settings)
        warn_of_slips(config, backend)
        warn_of_library(config, path)
    for text in warned:
        rule = "parameter" if "parameter" in text else "file"
        place.report.add(place.finding("warning", rule, text, place_in(text, config)))
    normalise(config, backend.instances, settings.gpus)
    _settle(model, config, place, settings, version, whole)


def _complete(
    config: ModelConfig, path: Path, backend: Backend, place: Place, settings: Settings
) -> bool:
    """Complete the configuration in place without loading; return False if only a load can complete it.

    Report what contradicts the version's files, and what only a load can tell. With
    --disable-auto-complete-config, a copy is completed, and `config` is unchanged whatever is returned.
    """
    try:
        check = check_of(backend, config.backend)
    except CoreError as error:
        place.report.add(place.error(error, "unchecked"))
        return False
    if check is None:
        if backend.complete is not None:
            text = f"only a load can check files of backend '{config.backend}': try --load"
            place.report.add(place.finding("note", "unchecked", text))
        return backend.complete is None
    if settings.options.disable_auto_complete_config:
        config = deepcopy(config)  # the file is compared, and completes nothing
    before = len(place.report.findings)
    whole = completed(config, path, backend, check, place)
    if not whole and len(place.report.findings) == before:
        text = "only a load can tell all that the version's files say: try --load"
        place.report.add(Finding("note", "unchecked", text, path))
    return whole


def _settle(
    model: CheckedModel,
    config: ModelConfig,
    place: Place,
    settings: Settings,
    version: int | None,
    whole: bool = True,
) -> None:
    """Check the rules of a completed configuration, and the files that it names.

    Set the model's `config`, and its signature of `version`, which is None for all versions. The signature is
    None if a rule is broken or `whole` is False: the configuration is not complete.
    """
    broken = broken_rules(config, place, settings, whole=whole)
    if not broken:
        check_data_files(config, replace(place, config=config), whole)
        check_rates(config, place, settings)
    signature = None
    if whole and not broken:
        try:
            signature = signature_of(without_labels_and_states(config), model.report.folder)
        except CoreError as error:
            place.report.add(place.error(error, "configuration"))
    for each in model.versions if version is None else [version]:
        model.signatures[each] = signature
    model.config = config
