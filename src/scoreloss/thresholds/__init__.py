"""Rules that turn scores into labels: ``fit`` on held-out data, then ``predict``.

A score at or above its threshold is positive. The candidates are all distinct scores and "above all of
them" (inf: predict nothing); among equals the highest wins. Never fit a rule on the data that it is
judged on, nor on those that trained the scores.
"""

from scoreloss.thresholds.expected import ExpectedF1, Lipton
from scoreloss.thresholds.given import Fixed, TopK
from scoreloss.thresholds.rule import Rule
from scoreloss.thresholds.searched import Averaging, Global, PerLabel

__all__ = ["Averaging", "ExpectedF1", "Fixed", "Global", "Lipton", "PerLabel", "Rule", "TopK"]
