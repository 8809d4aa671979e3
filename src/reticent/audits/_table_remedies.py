"""What could be done about a synthetic table that tells too much: named by column, and called possible where it was not tried."""

from reticent.evidence import ColumnLeak, Evidence, readable, strongest

__all__ = ["remedies_of_table"]

MOST_COLUMNS = 5  # named in the advice; the report lists the others
BY_ROWS = (
    "identical_rows",
    "rank_distance",
    "gower_distance",
    "distance_ratio",
    "hamming_difference",
    "density_ratio",
)


def remedies_of_table(evidence: Evidence) -> tuple[str, ...]:
    """Return what could help, the columns that tell most first.

    Parameters
    ----------
    evidence : Evidence
        What was found.
    """
    synthetic = evidence.synthetic
    if synthetic is None:
        return ()
    steps = [_column(leak) for leak in synthetic.leaking[:MOST_COLUMNS]]
    by_rows = [a for a in evidence.attacks if a.name in BY_ROWS]
    if evidence.file is not None and readable(evidence.file, evidence.file.rows):
        steps.append(
            "Possible, not tried: train the generator so that it copies nobody (more noise, fewer parameters, fewer passes). Do not delete the copied "
            "rows: a gap where a person should be tells as much."
        )
    elif by_rows and strongest(by_rows).auc.low > 0.5:
        steps.append(
            "Possible, not tried: rows lie nearer to members than to others; mix more people into each row, add noise, or stop the generator earlier."
        )
    steps.append(
        "Proven against every attack, its use not tried: a generator with differential privacy; state its epsilon with --claimed-epsilon to have it put "
        "to the test."
    )
    return tuple(steps)


def _column(leak: ColumnLeak) -> str:
    accuracy = f"its exact values tell members from others with an LTU accuracy of {leak.accuracy}"
    if leak.rounded is not None and leak.rounded.low <= 0.5:
        what = "Round" if leak.is_number else "Merge the rare categories of"
        return f"{what} '{leak.name}' before the generator is trained: {accuracy}, and in at most 16 bins with {leak.rounded}."
    what = "add noise to" if leak.is_number else "merge categories of"
    return f"Possible, not tried: leave out or {what} '{leak.name}': {accuracy}, and fewer values alone would not help."
