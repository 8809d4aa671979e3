"""Seed, levels, and how often each statement is put to the test: fixed before the run that the page shows.

A pilot with a tenth of the repeats came first. After it the repeats were lowered to fit the time, and worst cases, whose intervals are folded
at 0, are counted as a whole instead of end by end; two tables of the blind baseline became one; and a case of the gain was added, because it was
seen to miss while the interval was mended.
"""

SEED = 20_261  # of every draw; another one by --seed, which writes no page

LEVEL = 0.95
# What one interval of an audit gets of the default policy's confidence: five statements, thirteen attacks each.
AUDIT_LEVEL = 1 - 0.05 / 5 / 13

# A correct row is called broken once in a million suites.
ALARM = 1e-6
# A row is called kept only if an error rate this many times the stated one is excluded (95 % interval).
TOLERATED = 1.5
# Below this share of the stated rate, even at the upper end of its interval, a statement is called conservative.
CONSERVATIVE = 0.5

# Repeats by what one evaluation costs: 0.1 ms, 0.3 ms, 1 ms, 3 ms, 10 ms, 30 ms, 0.2 s.
INSTANT, QUICK, SHORT, MEDIUM, LONG, SLOW, SLOWEST = (
    15_000,
    6_000,
    4_000,
    2_500,
    1_200,
    400,
    200,
)
RARE = 60_000  # at the level of an audit, where 23 misses are expected among so many
# Audits from end to end, of each kind.
AUDITS = 12
OUTPUT_AUDITS = 40  # of saved outputs, which are cheaper
# Draws of a truth that has no closed form.
TRUTH = 2_000_000

# --quick: for development. Nothing of it is kept.
QUICK_SCALE = 0.05
