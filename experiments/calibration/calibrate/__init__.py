"""Measure how often what reticent states is wrong, on data whose truth is known."""
