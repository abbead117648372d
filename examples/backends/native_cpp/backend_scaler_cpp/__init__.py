"""y = (x - mean) / deviation, column by column, by the numbers in scaler.json."""

import json

import core
from backend_scaler_cpp import native


class Scaler(core.Model):
    def load(self):
        with open(self.file("scaler.json")) as file:
            self.columns = json.load(file)  # {"mean": […], "deviation": […]}


class ScalerInstance(core.ModelInstance):
    # core executes what the capsule holds, and releases it before the instance.
    def open(self):
        self.native = native.scaler(self.model.columns["mean"], self.model.columns["deviation"])


backend = core.Backend(model=Scaler, instance=ScalerInstance)
