"""A section of somebody else's."""

from markupsafe import Markup


class Contact:
    """Say whom to ask."""

    title = "Whom to ask"

    def html(self, dossier):
        return Markup("<p>The steward of {}.</p>").format(dossier.subject["table"])

    def text(self, dossier):
        return f"The steward of {dossier.subject['table']}."
