"""The language of conditions: `score > 0.5 and not any(mask)`.

tokens.py       text → tokens, with their positions
nodes.py        the syntax tree
parser.py       tokens → tree
kinds.py        checks numbers, truth values and texts against the datatypes of tensors
evaluation.py   tree and tensors → value
expression.py   what the rest of the plugin uses
"""

from core_ensembles.language.expression import Expression, expression_of

__all__ = ["Expression", "expression_of"]
