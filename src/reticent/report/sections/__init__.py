"""The sections of the report, in order: one file each, and one line here."""

from collections.abc import Iterator

from reticent.report._dossier import Dossier
from reticent.report._section import Section
from reticent.report.sections.attacks import AttacksSection
from reticent.report.sections.attributes import AttributesSection
from reticent.report.sections.blind import BlindSection
from reticent.report.sections.bound_to import BindingSection
from reticent.report.sections.controls import ControlsSection
from reticent.report.sections.epsilons import EpsilonsSection
from reticent.report.sections.file import FileSection
from reticent.report.sections.findings import FindingsSection
from reticent.report.sections.fine_print import FinePrintSection
from reticent.report.sections.glossary import GlossarySection
from reticent.report.sections.groups import GroupsSection
from reticent.report.sections.guarantee import ClaimSection, GuaranteeSection
from reticent.report.sections.insider import InsiderSection
from reticent.report.sections.limits import LimitsSection
from reticent.report.sections.not_run import NotRunSection
from reticent.report.sections.people import PeopleSection
from reticent.report.sections.pool import PoolSection
from reticent.report.sections.repeat import RepeatSection
from reticent.report.sections.scores import ScoresSection
from reticent.report.sections.statements import StatementsSection
from reticent.report.sections.table_alike import TableAlikeSection
from reticent.report.sections.table_disclosure import TableDisclosureSection
from reticent.report.sections.table_exposed import TableExposedSection
from reticent.report.sections.table_not_run import TableNotRunSection
from reticent.report.sections.table_pool import TablePoolSection
from reticent.report.sections.table_use import TableUseSection
from reticent.report.sections.verdict import VerdictSection
from reticent.report.sections.watched import WatchedSection
from reticent.report.sections.worst_case import WorstCaseSection

__all__ = ["SECTIONS", "TABLE_SECTIONS", "sections_of"]

_STATEMENTS = StatementsSection()
SECTIONS: tuple[Section, ...] = (
    VerdictSection(),
    ScoresSection(),
    LimitsSection(),
    _STATEMENTS,
    GuaranteeSection(),
    ClaimSection(),
    EpsilonsSection(),
    AttacksSection(),
    FileSection(),
    WorstCaseSection(),
    PeopleSection(),
    AttributesSection(),
    GroupsSection(),
    PoolSection(),
    InsiderSection(),
    WatchedSection(),
    ControlsSection(),
    BlindSection(),
    NotRunSection(),
    FindingsSection(),
    FinePrintSection(),
    GlossarySection(),
    BindingSection(),
    RepeatSection(),
)
# Of a synthetic table: who is exposed and by what comes before the attacks one by one.
TABLE_SECTIONS: tuple[Section, ...] = (
    VerdictSection(),
    ScoresSection(),
    LimitsSection(),
    TableExposedSection(),
    TableAlikeSection(),
    TableUseSection(),
    TableDisclosureSection(),
    _STATEMENTS,
    GuaranteeSection(),
    ClaimSection(),
    EpsilonsSection(),
    AttacksSection(),
    WorstCaseSection(),
    PeopleSection(),
    GroupsSection(),
    TablePoolSection(),
    ControlsSection(),
    BlindSection(),
    TableNotRunSection(),
    FindingsSection(),
    FinePrintSection(),
    GlossarySection(),
    BindingSection(),
    RepeatSection(),
)


def sections_of(dossier: Dossier) -> Iterator[Section]:
    """Yield the sections of the dossier's kind in order, those of the user's own after the statements."""
    for section in dossier.kind_sections or SECTIONS:
        yield section
        if section is _STATEMENTS:
            yield from dossier.own_sections
