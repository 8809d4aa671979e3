"""Say it, to people and to machines."""

from reticent.report._dossier import SCHEMA_NAME, Dossier, dossier_schema
from reticent.report._identification import IDENTIFICATION_FILE, Identification
from reticent.report.html import render_html
from reticent.report.plan_page import render_plan
from reticent.report.plan_text import plan_json, print_plan
from reticent.report.text import print_report, render_short, render_text
from reticent.report.train_text import print_training
from reticent.report.watched import print_identification, render_identification

__all__ = [
    "IDENTIFICATION_FILE",
    "SCHEMA_NAME",
    "Dossier",
    "Identification",
    "dossier_schema",
    "plan_json",
    "print_identification",
    "print_plan",
    "print_report",
    "print_training",
    "render_html",
    "render_identification",
    "render_plan",
    "render_short",
    "render_text",
]
