"""Gradient descent where its learning rate is the question: quadratics, wide networks, classifiers, many at once."""
