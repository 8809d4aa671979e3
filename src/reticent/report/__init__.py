"""Say it, to people and to machines."""

from reticent.report._dossier import SCHEMA_NAME, Dossier, dossier_schema
from reticent.report._section import Section
from reticent.report._terminal import Screen
from reticent.report.binding import Access, Binding, access_of, policy_digest
from reticent.report.comparison import (
    COMPARISON_FILE,
    ComparedDefence,
    ComparisonReport,
    comparison_json,
    print_comparison,
    read_comparison,
    render_comparison,
)
from reticent.report.html import render_html
from reticent.report.identification import (
    IDENTIFICATION_FILE,
    identification_json,
    print_identification,
    read_identification,
    render_identification,
    save_identification,
)
from reticent.report.plan_page import render_plan
from reticent.report.plan_text import plan_json, print_plan
from reticent.report.progress import Terminal, is_watched, terminal
from reticent.report.sections import SECTIONS, TABLE_SECTIONS
from reticent.report.sections.epsilons import refuted_sentence
from reticent.report.signature import is_signed_by, make_keys, sign
from reticent.report.summary import (
    aside_warning,
    insider_warning,
    lone_row_sentence,
    summarise,
)
from reticent.report.svg import Axis, Plot
from reticent.report.text import print_report, render_short, render_text
from reticent.report.train_text import (
    SynthesisSummary,
    TrainingSummary,
    print_synthesis,
    print_training,
)
from reticent.report.words import epsilon_words

__all__ = [
    "COMPARISON_FILE",
    "IDENTIFICATION_FILE",
    "SCHEMA_NAME",
    "SECTIONS",
    "TABLE_SECTIONS",
    "Access",
    "Axis",
    "Binding",
    "ComparedDefence",
    "ComparisonReport",
    "Dossier",
    "Plot",
    "Screen",
    "Section",
    "SynthesisSummary",
    "Terminal",
    "TrainingSummary",
    "access_of",
    "aside_warning",
    "comparison_json",
    "dossier_schema",
    "epsilon_words",
    "identification_json",
    "insider_warning",
    "is_signed_by",
    "is_watched",
    "lone_row_sentence",
    "make_keys",
    "plan_json",
    "policy_digest",
    "print_comparison",
    "print_identification",
    "print_plan",
    "print_report",
    "print_synthesis",
    "print_training",
    "read_comparison",
    "read_identification",
    "refuted_sentence",
    "render_comparison",
    "render_html",
    "render_identification",
    "render_plan",
    "render_short",
    "render_text",
    "save_identification",
    "sign",
    "summarise",
    "terminal",
]
