"""A command: core sizes MODEL_REPOSITORY prints how many bytes the files of each model have."""

from core.repository import FolderRepository, files_of

summary = "print the size of each model in a repository"


def arguments(parser):
    parser.add_argument("repository", metavar="MODEL_REPOSITORY", help="folder of the models")


def run(namespace):
    repository = FolderRepository(namespace.repository)
    repository.check()  # its CoreError is printed, and the exit status is 1
    for name in sorted(repository.names()):
        folder = repository.directory(name).path
        size = sum((folder / file).stat().st_size for file in files_of(folder))
        print(f"{size:>16,}  {name}")
    return 0
