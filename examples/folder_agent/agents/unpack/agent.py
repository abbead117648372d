"""A repository agent: what lies in `model.zip` is unpacked for as long as the model is loaded.

core-serve --repoagent-directory=examples/folder_agent/agents …
"""

import shutil
import zipfile

import core
from core.errors import invalid


class Unpack(core.RepositoryAgent):
    def load(self, model):
        most = int(model.parameters.get("most_bytes", 1 << 30))
        folder = model.acquire()
        shutil.copytree(model.location, folder, dirs_exist_ok=True)
        with zipfile.ZipFile(folder / "model.zip") as archive:
            size = sum(each.file_size for each in archive.infolist())
            if size > most:
                raise invalid(f"model.zip holds {size} bytes, it may hold {most}")
            archive.extractall(folder)
        (folder / "model.zip").unlink()
        model.update(folder)


agent = Unpack()
