"""The experiment: losses x seeds on one dataset, each judged under every threshold rule.

One file a stage, in the order it runs: ``experiment`` is what a person asks for, ``contenders`` what is tried of each loss,
``plan`` says which cells that makes and ``splits`` on which examples; ``search`` trains a pack of cells by ``train``, chooses on
validation data and judges by ``decide``, where one of the ``engines`` says; ``store`` keeps one file a cell, ``stats`` sums up over
seeds and says what is noise (``across``: over datasets), ``results`` is all of that together, ``report`` shows it, and ``run``
is the whole. ``estimate`` tells how long it will take; ``reproduce`` asks for the paper's own tables.
"""
