"""BaseHandler: loads a model, and answers by preprocess, inference, postprocess."""

import importlib
import os

import torch

from ts.labels import list_classes_from_module, load_label_mapping
from ts.timing import timed


class BaseHandler:
    def __init__(self):
        self.model = None
        self.mapping = None
        self.device = None
        self.initialized = False
        self.context = None
        self.model_pt_path = None
        self.manifest = None
        self.map_location = None
        self.explain = False
        self.target = 0
        self.profiler_args = {}

    def initialize(self, context):
        """Load the model and the labels that the manifest of `context` names.

        The model is the only class of modelFile with the weights of serializedFile, if there are any. Without
        modelFile, serializedFile is TorchScript (.pt) or ONNX (.onnx). Raises RuntimeError for another file.
        """
        self.model_yaml_config = context.model_yaml_config
        self.manifest = context.manifest
        gpu = context.system_properties.get("gpu_id")
        on_gpu = gpu is not None and torch.cuda.is_available()
        self.map_location = "cuda" if on_gpu else "cpu"
        self.device = torch.device(f"cuda:{gpu}" if on_gpu else "cpu")
        folder = context.system_properties["model_dir"]
        model = self.manifest["model"]
        if "serializedFile" in model:
            self.model_pt_path = os.path.join(folder, model["serializedFile"])
        if model.get("modelFile"):
            self.model = self._load_pickled_model(folder, model["modelFile"], self.model_pt_path)
            self.model.to(self.device).eval()
        elif self.model_pt_path and self.model_pt_path.endswith(".pt"):
            self.model = self._load_torchscript_model(self.model_pt_path)
            self.model.eval()
        elif self.model_pt_path and self.model_pt_path.endswith(".onnx"):
            self.model = self._load_onnx(self.model_pt_path)
        else:
            raise RuntimeError(
                f"BaseHandler reads no '{model.get('serializedFile')}': expected TorchScript (.pt), .onnx, "
                "or a model file with weights"
            )
        self.mapping = load_label_mapping(os.path.join(folder, "index_to_name.json"))
        self.initialized = True

    def _load_torchscript_model(self, model_pt_path):
        return torch.jit.load(model_pt_path, map_location=self.device)

    def _load_onnx(self, path):
        import onnxruntime

        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def _load_pickled_model(self, model_dir, model_file, model_pt_path):
        module = importlib.import_module(os.path.splitext(model_file)[0])
        classes = list_classes_from_module(module)
        if len(classes) != 1:
            raise ValueError(f"'{model_file}': expected one class, found {classes}")
        model = classes[0]()
        if model_pt_path:
            model.load_state_dict(
                torch.load(model_pt_path, map_location=self.device, weights_only=True)
            )
        return model

    @timed
    def preprocess(self, data):
        return torch.as_tensor(data, device=self.device)

    @timed
    def inference(self, data, *args, **kwargs):
        with torch.inference_mode():
            return self.model(data.to(self.device), *args, **kwargs)

    @timed
    def postprocess(self, data):
        return data.tolist()

    def handle(self, data, context):
        self.context = context
        return self.postprocess(self.inference(self.preprocess(data)))

    def describe_handle(self):
        return None

    def get_device(self):
        return self.device
