"""From a trained model to an answer: model folders, predictions for SMILES, descriptions, drawn encodings.

``graphgps_pearl.load(PATH).predict(["CCO"])`` is :func:`graphgps_pearl.inference.loading.load`. Nothing is
imported here, so that the command line can answer ``--help`` and mistakes without torch.
"""
