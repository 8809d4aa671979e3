"""Say it, to people and to machines."""

from reticent.report._dossier import SCHEMA_NAME, Dossier, dossier_schema
from reticent.report._section import Section
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
from reticent.report.sections import SECTIONS
from reticent.report.sections.epsilons import refuted_sentence
from reticent.report.summary import insider_warning, summarise
from reticent.report.text import print_report, render_short, render_text
from reticent.report.train_text import TrainingSummary, print_training

__all__ = [
    "IDENTIFICATION_FILE",
    "SCHEMA_NAME",
    "SECTIONS",
    "Dossier",
    "Section",
    "Terminal",
    "TrainingSummary",
    "dossier_schema",
    "identification_json",
    "insider_warning",
    "is_watched",
    "plan_json",
    "print_identification",
    "print_plan",
    "print_report",
    "print_training",
    "read_identification",
    "refuted_sentence",
    "render_html",
    "render_identification",
    "render_plan",
    "render_short",
    "render_text",
    "save_identification",
    "summarise",
    "terminal",
]
