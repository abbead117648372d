"""The kind of an iris from four lengths in cm: a class of one's own, which knows nothing of a server.

    X FP64[n, 4] → predict FP64[n, 1], predict_proba FP64[n, 3]

Its configuration is completed from its methods. docs/serve/other-classes.md says what such a class may have.
"""

import numpy as np

# Means of sepal length, sepal width, petal length and petal width of 50 flowers of each kind.
CENTRES = {
    "setosa": [5.006, 3.428, 1.462, 0.246],
    "versicolor": [5.936, 2.770, 4.260, 1.326],
    "virginica": [6.588, 2.974, 5.552, 2.026],
}


class Iris:
    def load(self):
        self.centres = np.array(list(CENTRES.values()))

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        near = np.exp(-np.square(X[:, None] - self.centres).sum(axis=2))
        return near / near.sum(axis=1, keepdims=True)

    def class_names(self):
        return list(CENTRES)
