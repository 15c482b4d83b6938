"""The experiment: losses x seeds on one dataset, each judged under every threshold rule.

One file a stage, in the order it runs: ``plan`` says what is to be trained, ``train`` trains it as one batched
program, ``decide`` puts the thresholds and judges, ``store`` keeps one file a cell, ``stats`` sums up over seeds and says
what is noise (``across``: over datasets), ``results`` is all of that together, ``report`` shows it, and ``run`` is the whole.
"""
