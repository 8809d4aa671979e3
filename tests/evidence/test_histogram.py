"""Histograms can be drawn whatever the scores are."""

import numpy as np
import pytest

from reticent.evidence.histogram import Histogram, score_histogram
from reticent.report.plots import fill_histogram, histogram_plot


@pytest.mark.parametrize("many", [1, 199, 200])
def test_scores_that_are_one_but_for_their_last_bits_have_bins_with_a_width(many):
    """A tree of depth one gives most people the same score, and sums of equal numbers differ in the last bit."""
    scores = np.repeat([0.1 + 0.2, 0.3, 7.0], [many, 200 - many, 1])
    histogram = score_histogram(scores, scores)
    assert (np.diff(histogram.edges) > 0).all()
    assert sum(histogram.members) > 0.9


def test_bins_of_wide_scores_follow_their_percentiles():
    histogram = score_histogram(np.arange(1000.0), np.arange(1000.0))
    low, high = histogram.edges[0], histogram.edges[-1]
    assert low == pytest.approx(-high)
    assert 1.6 < high < 1.75  # the 99th percentile of a uniform score is .98 * sqrt(3)


def test_a_stored_histogram_without_width_is_drawn():
    flat = Histogram(edges=(0.5, 0.5), members=(1.0,), nonmembers=(1.0,))
    plot = histogram_plot(flat, "score", "Scores", (0.5, 0.5))
    fill_histogram(plot, flat, "score", ".3g")
    assert "NaN" not in str(plot.svg("plot-scores"))
