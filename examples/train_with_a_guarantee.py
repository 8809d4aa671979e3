"""Train a private classifier in a scikit-learn pipeline, and release a count with noise."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from reticent import PrivateNetworkClassifier
from reticent.account import Gaussian
from reticent.train import release_numbers

X, y = make_classification(8000, 20, n_informative=10, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
# Bounds must come from public knowledge about the columns, not from these records.
model = PrivateNetworkClassifier(epsilon=3.0, bounds=(-10.0, 10.0)).fit(
    X_train, y_train
)
guarantee = model.guarantee_
print(f"accuracy {model.score(X_test, y_test):.2f}")
print(
    f"epsilon {guarantee.epsilon:.2f} at delta {guarantee.delta:.1e}, {guarantee.relation}"
)
print(f"nobody becomes more than {100 * guarantee.belief:.0f} % sure of a record")

ill = np.array([float(y_train.sum())])  # one record moves the count by one
noisy = release_numbers(Gaussian.analytic(epsilon=0.5, delta=1e-6), ill, sensitivity=1)
print(f"about {noisy[0]:.0f} of the records are of class 1")
