"""Models with one fault each: what the check must say, and whether a load refuses the model."""

# ruff: noqa: E501 (a case stays on one line)

import json
from typing import NamedTuple

import repository_check.check_onnx as onnx

X = 'input { name: "x" data_type: TYPE_FP32 dims: 4 }\n'
Y = 'output { name: "y" data_type: TYPE_FP32 dims: 4 }\n'
ONNX = 'backend: "onnxruntime"\nmax_batch_size: 4\n'
PYTHON = 'backend: "python"\nmax_batch_size: 4\n' + X + Y
ECHO = (
    "import triton_python_backend_utils as pb\n\n\nclass TritonPythonModel:\n"
    "    def execute(self, requests):\n        return [\n            pb.InferenceResponse([pb.Tensor('y', "
    "pb.get_input_tensor_by_name(r, 'x').as_numpy())])\n            for r in requests\n        ]\n"
)
IDENTITY = 'backend: "identity"\nmax_batch_size: 4\n'
IN = 'input { name: "INPUT0" data_type: TYPE_FP32 dims: 4 }\n'
OUT = 'output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 4 }\n'
STEP = 'step { model_name: "%s" input_map { key: "%s" value: "a" } output_map { key: "%s" value: "%s" } }'


def write(root, files):
    """Write path → text or bytes below a folder. A path that ends in "/" is an empty folder."""
    for path, content in files.items():
        target = root / path
        if path.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            target.write_text(content)
    return root


class Broken(NamedTuple):
    """One fault.

    files     path below the model's folder → content
    rule      of the finding
    text      part of its text
    at        (line, column) of its place in config.pbtxt; None for a place in another file
    refused   whether a load refuses the model; otherwise the finding is a warning
    """

    files: dict
    rule: str
    text: str
    at: tuple | None = None
    refused: bool = True


def onnx_model(config=ONNX + X + Y, file=None, **more):
    return {"config.pbtxt": config, "1/model.onnx": file or onnx.model(), **more}


def python_model(config=PYTHON, code=ECHO, **more):
    return {"config.pbtxt": config, "1/model.py": code, **more}


def identity(config):
    return {"config.pbtxt": IDENTITY + IN + OUT + config, "1/": ""}


def ensemble(steps, inputs="a", outputs="b", more=""):
    text = 'platform: "ensemble"\nmax_batch_size: 4\n' + more
    for kind, names in (("input", inputs), ("output", outputs)):
        for name in names.split():
            text += f'{kind} {{ name: "{name}" data_type: TYPE_FP32 dims: 4 }}\n'
    return {"config.pbtxt": f"{text}ensemble_scheduling {{\n{steps}\n}}\n", "1/": ""}


def tree(**learner):
    """Return a forest of XGBoost with one leaf, in JSON."""
    of_tree = {
        "tree_param": {"num_deleted": "0", "num_feature": "4", "num_nodes": "1", "size_leaf_vector": "1"},
        "id": 0, "loss_changes": [0.0], "sum_hessian": [1.0], "base_weights": [0.5],
        "left_children": [-1], "right_children": [-1], "split_indices": [0],
        "split_conditions": [0.5], "split_type": [0], "default_left": [0], "parents": [2147483647],
        "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": [],
    }  # fmt: skip
    return json.dumps(
        {
            "learner": {
                "attributes": {},
                "feature_names": [],
                "feature_types": [],
                "gradient_booster": {
                    "model": {
                        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "1"},
                        "iteration_indptr": [0, 1],
                        "tree_info": [0],
                        "trees": [of_tree],
                    },
                    "name": "gbtree",
                },
                "learner_model_param": {
                    "base_score": "5E-1",
                    "boost_from_average": "1",
                    "num_class": "0",
                    "num_feature": "4",
                    "num_target": "1",
                },
                "objective": {
                    "name": "reg:squarederror",
                    "reg_loss_param": {"scale_pos_weight": "1"},
                },
                **learner,
            },
            "version": [2, 1, 0],
        }
    )


FIL_IN = 'input { name: "input__0" data_type: TYPE_FP32 dims: 4 }\n'
FIL_OUT = 'output { name: "output__0" data_type: TYPE_FP32 dims: 1 }\n'
FIL = 'backend: "fil"\nmax_batch_size: 8\n'


def forest(config=FIL + FIL_IN + FIL_OUT, file=None):
    return {"config.pbtxt": config, "1/xgboost.json": tree() if file is None else file}


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


SEQUENCE = IDENTITY + IN + OUT

BROKEN = {
    # the text of config.pbtxt
    "misspelt_field": Broken(onnx_model("max_batch_sise: 4\n" + X + Y), "syntax", "did you mean 'max_batch_size'", (1, 1)),
    "byte_order_mark": Broken(onnx_model("\ufeff" + ONNX + X + Y), "syntax", "begins with a byte-order mark", (1, 1)),
    "misspelt_value": Broken(onnx_model(ONNX + X.replace("TYPE_FP32", "TYPE_FLOAT32") + Y), "syntax", "DataType has no value", (3, 19)),
    "number_in_quotes": Broken(onnx_model('max_batch_size: "4"\n' + X + Y), "syntax", "without quotes", (1, 17)),
    "text_without_quotes": Broken(python_model(PYTHON + 'parameters { key: "a" value { string_value: 3 } }\n'), "syntax", 'write "3"', (5, 45)),
    "unclosed_message": Broken(onnx_model(ONNX + X + "output { name: \"y\"\n"), "syntax", "", (4, 16)),
    "wrong_name": Broken(onnx_model('name: "other"\n' + ONNX + X + Y), "name", "directory name must equal model name", (1, 1)),
    "empty_file": Broken(onnx_model(ONNX + X + Y, b"\0"), "file", "no complete ONNX model"),
    # the layout
    "no_version": Broken({"config.pbtxt": ONNX + X + Y, "model.onnx": onnx.model()}, "layout", "no version", (1, 1)),
    "no_file": Broken({"config.pbtxt": ONNX + X + Y, "1/": ""}, "file", "unable to find"),
    "misnamed_file": Broken({"config.pbtxt": ONNX + X + Y, "1/net.onnx": onnx.model()}, "file", "its folder has net.onnx"),
    "no_wanted_version": Broken(onnx_model(ONNX + X + Y + "version_policy { specific { versions: 7 } }\n"), "version", "selects none", (5, 1)),
    "unknown_backend": Broken(onnx_model(ONNX.replace("time", "tim") + X + Y), "backend", "no backend named 'onnxruntim'", (1, 1)),
    "unknown_platform": Broken({"config.pbtxt": 'platform: "caffe2_netdef"\n' + X + Y, "1/": ""}, "configuration", "unexpected platform type", (1, 1)),
    "damaged_saved_model": Broken({"1/model.savedmodel/saved_model.pb": b"x"}, "file", "damaged, or no SavedModel"),
    "version_with_a_zero": Broken({"config.pbtxt": ONNX + X + Y, "01/model.onnx": onnx.model()}, "layout", "the name of a version folder is a number", (1, 1)),
    "version_in_a_version": Broken({"config.pbtxt": ONNX + X + Y, "1/1/model.onnx": onnx.model()}, "file", "its folder has 1 (a folder)"),
    "config_is_a_folder": Broken({"config.pbtxt/": "", "1/model.onnx": onnx.model()}, "layout", "'config.pbtxt' is a folder", refused=False),
    # the rules of the configuration
    "negative_batch": Broken(onnx_model('backend: "onnxruntime"\nmax_batch_size: -1\n' + X + Y), "configuration", "must be non-negative", (2, 1)),
    "zero_dim": Broken(identity("").copy() | {"config.pbtxt": IDENTITY + IN.replace("dims: 4", "dims: 0") + OUT}, "configuration", "must be integer >= 1", (3, 45)),
    "input_twice": Broken(onnx_model(ONNX + X + X + Y), "configuration", "specified more than once", (4, 1)),
    "preferred_too_large": Broken(identity("dynamic_batching { preferred_batch_size: [ 2, 9 ] }\n"), "configuration", "must be <= max batch size", (5, 20)),
    "no_default_priority": Broken(identity("dynamic_batching { priority_levels: 2 }\n"), "configuration", "default priority level", (5, 1)),
    "cache_with_decoupled": Broken(python_model(PYTHON + "response_cache { enable: true }\nmodel_transaction_policy { decoupled: true }\n"), "configuration", "Response Cache", (5, 18)),
    "gpus_on_cpu": Broken(identity("instance_group { kind: KIND_CPU gpus: 0 }\n"), "configuration", "specifies one or more GPUs", (5, 33)),
    "gpu_without_gpus": Broken(identity("instance_group { kind: KIND_GPU }\n"), "configuration", "no GPUs are available", (5, 1)),
    "profile_without_tensorrt": Broken(identity('instance_group { profile: "1" }\n'), "configuration", "only supported for TensorRT", (5, 18)),
    "reshape_of_other_size": Broken(identity("").copy() | {"config.pbtxt": IDENTITY + IN.replace("dims: 4", "dims: 4 reshape { shape: 3 }") + OUT}, "configuration", "different size for dims and reshape", (3, 45)),
    "control_without_values": Broken(identity('sequence_batching { control_input { name: "S" control { kind: CONTROL_SEQUENCE_START } } }\n'), "configuration", "", (5, 47)),
    "two_controls_of_a_kind": Broken(identity('sequence_batching { control_input [ { name: "S" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }, { name: "T" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } ] }\n'), "configuration", "multiple CONTROL_SEQUENCE_START", (5, 49)),
    "path_out_of_the_folder": Broken(onnx_model(ONNX + X + Y + 'default_model_filename: "../../../x.onnx"\n'), "configuration", "outside model directory", (5, 1)),
    "bad_metric_tag": Broken(identity('metric_tags { key: "a b" value: "c" }\n'), "configuration", "metric tag must consist of", (5, 1)),
    "unknown_priority": Broken(identity("dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value { } } }\n"), "configuration", "must have priority level in range [1, 2]"),
    "two_schedulers": Broken(identity("dynamic_batching { }\nsequence_batching { }\n"), "syntax", "another member of oneof", (6, 1)),
    "falling_buckets": Broken(onnx_model(ONNX + X + Y + 'model_metrics { metric_control { metric_identifier { family: "nv_inference_first_response_histogram_ms" } histogram_options { buckets: [ 5, 1 ] } } }\n'), "configuration", "in ascending order"),
    "state_twice": Broken(identity('sequence_batching { state { input_name: "s" output_name: "t" data_type: TYPE_FP32 dims: 2 } state { input_name: "s" output_name: "u" data_type: TYPE_FP32 dims: 2 } }\n'), "configuration", "specified more than once"),
    # files that the configuration names
    "missing_labels": Broken(onnx_model(ONNX + X + 'output { name: "y" data_type: TYPE_FP32 dims: 4 label_filename: "labels.txt" }\n'), "labels", "is missing", (4, 49)),
    "too_few_labels": Broken(onnx_model(ONNX + X + 'output { name: "y" data_type: TYPE_FP32 dims: 4 label_filename: "labels.txt" }\n', **{"labels.txt": "a\nb\n"}), "labels", "has 2 lines, and the output has 4 values", (4, 49), refused=False),
    "labels_out_of_the_folder": Broken(onnx_model(ONNX + X + 'output { name: "y" data_type: TYPE_FP32 dims: 4 label_filename: "../../labels.txt" }\n'), "labels", "outside of the folder", (4, 49)),
    "missing_initial_state": Broken(identity('sequence_batching { state { input_name: "s" output_name: "t" data_type: TYPE_FP32 dims: 2 initial_state { name: "i" data_type: TYPE_FP32 dims: 2 data_file: "zero" } } }\n'), "data", "is missing", (5, 146)),
    "short_initial_state": Broken(identity('sequence_batching { state { input_name: "s" output_name: "t" data_type: TYPE_FP32 dims: 2 initial_state { name: "i" data_type: TYPE_FP32 dims: 2 data_file: "zero" } } }\n') | {"initial_state/zero": b"1234"}, "data", "has 4 bytes, its dims and datatype need 8", (5, 146)),
    "missing_warmup_data": Broken(onnx_model(ONNX + X + Y + 'model_warmup { name: "w" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "d" } } }\n'), "data", "is missing", (5, 40)),
    "long_warmup_data": Broken(onnx_model(ONNX + X + Y + 'model_warmup { name: "w" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "d" } } }\n', **{"warmup/d": b"1" * 20}), "data", "has 20 bytes, its dims and datatype need 16", (5, 40)),
    "warmup_of_unknown_input": Broken(onnx_model(ONNX + X + Y + 'model_warmup { name: "w" batch_size: 1 inputs { key: "xx" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }\n'), "data", "which the model does not have", (5, 40)),
    "warmup_without_an_input": Broken(onnx_model(ONNX + X + Y + 'model_warmup { name: "w" batch_size: 1 }\n'), "data", "lacks the input x", (5, 1)),
    # parameters
    "unknown_parameter": Broken(onnx_model(ONNX + X + Y + parameter("intra_op_thread_cuont", "1")), "parameter", "is 'intra_op_thread_count' meant", (5, 1), refused=False),
    "number_that_is_none": Broken(onnx_model(ONNX + X + Y + parameter("intra_op_thread_count", "two")), "file", "it must be a whole number", (5, 1)),
    "removed_parameter": Broken(forest(FIL + FIL_IN + FIL_OUT + parameter("algo", "NAIVE")), "parameter", "Use `layout` instead", (5, 1), refused=False),
    "unknown_mode": Broken(python_model(PYTHON + parameter("EXECUTION_MODE", "fork")), "file", "expected one of process", (5, 1)),
    # ONNX
    "other_datatype": Broken(onnx_model(ONNX + X.replace("FP32", "INT64") + Y), "file", "model provides TYPE_FP32", (3, 19)),
    "other_dims": Broken(onnx_model(ONNX + X + Y.replace("dims: 4", "dims: 5")), "file", "shape [-1,4]", (4, 41)),
    "other_input": Broken(onnx_model(ONNX + X.replace('"x"', '"z"') + Y), "file", "config.pbtxt lacks x", (3, 9)),
    "other_output": Broken(onnx_model(ONNX + X + Y.replace('"y"', '"z"')), "file", "allowed outputs are: y", (4, 10)),
    "batch_of_a_fixed_shape": Broken(onnx_model(file=onnx.model((("x", onnx.FLOAT, [1, 4]),), (("y", onnx.FLOAT, [1, 4]),))), "file", "the first dimension must be -1", (2, 1)),
    "damaged_onnx": Broken(onnx_model(file=onnx.model()[:-9]), "file", "no complete ONNX model"),
    "new_opset": Broken(onnx_model(file=onnx.model(opset=99)), "file", "opset 99"),
    "new_ir": Broken(onnx_model(file=onnx.model(ir=99)), "file", "IR version 99"),
    "unknown_operator": Broken(onnx_model(file=onnx.model(nodes=[("Relux", ["x"], ["y"], "")])), "file", "operator Relux"),
    "unknown_tensor": Broken(onnx_model(file=onnx.model(nodes=[("Add", ["x", "z"], ["y"], "")])), "file", "need z, which nothing"),
    "unwritten_tensor": Broken(onnx_model(file=onnx.model(nodes=[("Relu", ["x"], ["z"], "")])), "file", "need y, which nothing"),
    "tensor_twice": Broken(onnx_model(file=onnx.model(nodes=[("Relu", ["x"], ["y"], ""), ("Relu", ["x"], ["y"], "")])), "file", "it defines y more than once"),
    "input_of_a_graph_twice": Broken(onnx_model(file=onnx.model((("x", onnx.FLOAT, ["n", 4]),) * 2)), "file", "it defines x more than once"),
    "input_is_written": Broken(onnx_model(file=onnx.model(nodes=[("Relu", ["x"], ["x"], ""), ("Relu", ["x"], ["y"], "")])), "file", "it defines x more than once"),
    "circle_of_nodes": Broken(onnx_model(file=onnx.model(nodes=[("Add", ["x", "b"], ["a"], ""), ("Relu", ["a"], ["b"], ""), ("Relu", ["b"], ["y"], "")])), "file", "none of a, b, y can be computed first"),
    "missing_weights": Broken(onnx_model(file=onnx.with_external_data()), "file", "external data is missing"),
    "short_weights": Broken(onnx_model(file=onnx.with_external_data(), **{"1/weights.bin": b"1234"}), "file", "16 are needed"),
    "pointer_of_lfs": Broken(onnx_model(file=b"version https://git-lfs.github.com/spec/v1\n"), "file", "git lfs pull"),
    # Python
    "wrong_syntax": Broken(python_model(code="class TritonPythonModel\n"), "file", "SyntaxError"),
    "no_class": Broken(python_model(code="x = 1\n"), "file", "no class TritonPythonModel"),
    "no_execute": Broken(python_model(code="class TritonPythonModel:\n    pass\n"), "file", "does not implement `execute`", refused=False),
    "missing_module": Broken(python_model(code="import no_such_module\n" + ECHO), "file", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
    "no_archive": Broken(python_model(PYTHON + parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY/env.tar.gz"), **{"env.tar.gz": "text"}), "file", "no archive of a kind that is known", (5, 1)),
    "no_environment": Broken(python_model(PYTHON + parameter("EXECUTION_ENV_PATH", "/none.tar.gz")), "file", "does not exist", (5, 1)),
    # forests
    "other_width": Broken(forest(FIL + FIL_IN + FIL_OUT.replace("dims: 1", "dims: 3")), "file", "do not fit"),
    "other_features": Broken(forest(FIL + FIL_IN.replace("dims: 4", "dims: 9") + FIL_OUT), "file", "the forest has 4 features"),
    "cut_off_forest": Broken(forest(file=tree()[:-20]), "file", "no complete model"),
    "pickle_of_a_forest": Broken(forest(file=b"\x80\x04K\x01."), "file", "is a pickle"),
    # ensembles
    "missing_model": Broken(ensemble(STEP % ("nowhere", "x", "y", "b")), "ensemble", "which the repository lacks", (6, 8)),
    "unknown_input_of_a_step": Broken(ensemble(STEP % ("good", "xx", "y", "b")), "ensemble", "the model has no input 'xx'", (6, 27)),
    "unknown_output_of_a_step": Broken(ensemble(STEP % ("good", "x", "yy", "b")), "ensemble", "the model has no output 'yy'", (6, 61)),
    "unused_input": Broken(ensemble(STEP % ("good", "x", "y", "b"), inputs="a c"), "configuration", "input 'c' for ensemble", (4, 9)),
    "unwritten_output": Broken(ensemble(STEP % ("good", "x", "y", "b"), outputs="b c"), "configuration", "output 'c' for ensemble", (5, 10)),
    "circle_of_tensors": Broken(ensemble('step { model_name: "good" input_map { key: "x" value: "d" } output_map { key: "y" value: "c" } }\n' 'step { model_name: "good" input_map { key: "x" value: "c" } output_map { key: "y" value: "d" } }\n' + STEP % ("good", "x", "y", "b")), "configuration", "is unused", None),
    "missing_version_of_a_step": Broken(ensemble((STEP % ("good", "x", "y", "b")).replace("input_map", "model_version: 3 input_map", 1)), "ensemble", "version 3 of 'good'", (6, 27)),
    "other_shape_of_a_step": Broken(ensemble(STEP % ("good", "x", "y", "b")) | {"config.pbtxt": ensemble(STEP % ("good", "x", "y", "b"))["config.pbtxt"].replace("dims: 4", "dims: 5", 1)}, "ensemble", "inconsistent shape"),
    "other_type_of_a_step": Broken(ensemble(STEP % ("good", "x", "y", "b")) | {"config.pbtxt": ensemble(STEP % ("good", "x", "y", "b"))["config.pbtxt"].replace("FP32", "INT8", 1)}, "ensemble", "inconsistent data type"),
    "ensemble_of_a_failed_model": Broken(ensemble(STEP % ("new_ir", "x", "y", "b")), "ensemble", "which has errors", (6, 8)),
    "larger_batch_than_a_step": Broken(ensemble(STEP % ("good", "x", "y", "b")) | {"config.pbtxt": ensemble(STEP % ("good", "x", "y", "b"))["config.pbtxt"].replace("max_batch_size: 4", "max_batch_size: 8")}, "ensemble", "allows maximum batch size 8", (6, 8)),
    "ensemble_with_instances": Broken(ensemble(STEP % ("good", "x", "y", "b"), more="instance_group { count: 1 }\n"), "configuration", "instance group should not be specified", (3, 1)),
    "calls_its_caller": Broken(ensemble(STEP % ("calls_back", "a", "b", "b")), "ensemble", "calls the model 'calls_back', which has errors"),
    "calls_back": Broken(ensemble(STEP % ("calls_its_caller", "a", "b", "b")), "ensemble", "circular dependency"),
    "calls_itself": Broken(ensemble(STEP % ("calls_itself", "a", "b", "b")), "ensemble", "circular dependency", (5, 1)),
    # language models
    "no_gguf": Broken({"config.pbtxt": 'backend: "llamacpp"\n', "1/model.gguf": b"GGML1234"}, "file", "another format"),
}  # fmt: skip
