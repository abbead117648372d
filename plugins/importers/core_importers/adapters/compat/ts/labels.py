"""Classes, labels and errors: ts.utils.util of torchserve."""

import inspect
import json
import os


class PredictionException(Exception):
    """An error whose text clients get."""

    def __init__(self, message, error_code=500):
        super().__init__(message)
        self.message = message
        self.error_code = error_code

    def __str__(self):
        return f"{self.message} : {self.error_code}"


def list_classes_from_module(module, parent_class=object):
    """Return the classes that a module defines itself, by name."""
    found = inspect.getmembers(module, inspect.isclass)
    return [
        each
        for _, each in found
        if each.__module__ == module.__name__ and issubclass(each, parent_class or object)
    ]


def load_label_mapping(mapping_file_path):
    """Return class → label of index_to_name.json; None without the file."""
    if not os.path.isfile(mapping_file_path):
        return None
    with open(mapping_file_path, encoding="utf-8") as file:
        mapping = json.load(file)
    if not isinstance(mapping, dict):
        raise ValueError(f"'{mapping_file_path}': expected an object of class and label")
    if isinstance(names := mapping.get("object_type_names"), list):
        return {str(number): name for number, name in enumerate(names)}
    # ImageNet's form has a list of an id and the name.
    return {key: value[-1] if isinstance(value, list) else value for key, value in mapping.items()}


def map_class_to_label(probs, mapping=None, lbl_classes=None):
    """Return a dict of label → probability for each row; without a mapping the class is the label."""
    if lbl_classes is None:
        lbl_classes = [range(len(probs[0]))] * len(probs)
    return [
        {
            str(number) if mapping is None else mapping[str(number)]: value
            for number, value in zip(*row)
        }
        for row in zip(lbl_classes, probs)
    ]
