"""Roles that quote a claim in prose: its number, count, percentage or agreement, or only the mark."""

# docutils has no complete types.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Sequence

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from companion.figures.plain_math import as_plain_text, number, withheld_because
from companion.figures.record import Claim, PublishedClaim, PublishedWithheld
from companion.io.errors import did_you_mean
from companion.project.paths import DEFAULT_PROFILE
from companion.site.sphinx.claim_index import all_claims, all_withheld, note_shown
from companion.site.sphinx.inline_text import LEDGER, claim_anchor, ledger_anchor, mark


def _number(claim: Claim) -> str:
    return number(claim.measured)


def _count(claim: Claim) -> str:
    if claim.successes is None or claim.trials is None:
        raise ValueError("needs a claim with `count=(successes, trials)`")
    return f"{claim.successes} of {claim.trials}"


def _percent(claim: Claim) -> str:
    if not 0 <= claim.measured <= 1:
        raise ValueError(f"needs a claim that measures a fraction between 0 and 1, not {number(claim.measured)}")
    return f"{100 * claim.measured:.3g} %"


def _agreement(claim: Claim) -> str:
    if claim.comparisons is None:
        raise ValueError("needs a claim made by `agree`, which measures deviations in standard errors")
    return f"agree ({claim.agreement})"


def _nothing(_claim: Claim) -> str:
    return ""


# Role name: the text before the mark. It raises `ValueError` for a claim that has no such text.
FORMS: dict[str, Callable[[Claim], str]] = {
    "claim": _number,
    "claim-count": _count,
    "claim-percent": _percent,
    "claim-agree": _agreement,
    "claim-quiet": _nothing,
}


class ClaimRole(SphinxRole):
    """`` {claim}`id` ``: a link to the claim `id` whose text is a form of the measured value and the verdict's mark.

    Args:
      form: returns the text before the mark; raises `ValueError` for a claim that has no such text.
    """

    def __init__(self, form: Callable[[Claim], str]):
        self.form = form

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link, or an error that fails a strict build."""
        note_shown(self.env, self.text)
        claims = {claim.id: claim for claim in all_claims(self.env.app)}
        withheld = {claim.id: claim for claim in all_withheld(self.env.app)}
        if self.text in withheld:
            return self._withheld(withheld[self.text])
        if self.text not in claims:
            return self._error(f"There is no claim {self.text!r}. {did_you_mean(self.text, claims)}")
        claim = claims[self.text]
        try:
            text = self.form(claim)
        except ValueError as error:
            return self._error(f"The role `{self.name}` of {self.text!r} {error}.")
        classes = ["companion-mark"] if claim.holds else ["companion-mark", "companion-fails"]
        label = [
            nodes.Text(f"{text}\N{NO-BREAK SPACE}" if text else ""),
            nodes.inline("", mark(claim), classes=classes),
        ]
        return [self._link(label, claim)], []

    def _withheld(self, claim: PublishedWithheld) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a link that says so; on the published site, whose sentences need their numbers, an error."""
        if self.config.companion_profile == DEFAULT_PROFILE:
            reason = as_plain_text(withheld_because(claim))
            return self._error(
                f"The role `{self.name}` quotes the claim {claim.id!r}, which is {reason}. Remove the quotation, or "
                "choose parameters at which it can be claimed."
            )
        return [self._link([nodes.Text("(not claimed here)")], claim)], []

    def _link(self, label: Sequence[nodes.Node], claim: PublishedClaim | PublishedWithheld) -> nodes.Node:
        page, anchor = (claim.notebook, claim_anchor) if claim.figure else (LEDGER, ledger_anchor)
        uri = f"{self._relative_uri(f'{self.config.companion_project.book.name}/{page}')}#{anchor(claim.id)}"
        return nodes.reference("", "", *label, refuri=uri, internal=True, classes=["companion-claim"])

    def _error(self, sentence: str) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        message = self.inliner.reporter.error(sentence)
        return [nodes.problematic(self.rawtext, self.rawtext, refid=message)], [message]

    def _relative_uri(self, target: str) -> str:
        builder = self.env.app.builder
        return "" if target == self.env.docname else builder.get_relative_uri(self.env.docname, target)
