"""Roles that quote a claim in prose: its number, count, percentage or agreement, or only the mark."""

# docutils has no complete types.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from companion.figures.plain_math import as_plain_text, number, withheld_because
from companion.figures.record import Claim, PublishedWithheld
from companion.io.errors import did_you_mean
from companion.project.paths import DEFAULT_PROFILE
from companion.site.sphinx.claim_index import all_claims, all_withheld, note_shown
from companion.site.sphinx.inline_text import mark, page_link, place_of_claim


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


# Role name: the text before the mark. It raises `ValueError` for a claim that has no such text.
FORMS: dict[str, Callable[[Claim], str]] = {
    "claim": lambda claim: number(claim.measured),
    "claim-count": _count,
    "claim-percent": _percent,
    "claim-agree": _agreement,
    "claim-quiet": lambda _: "",
}


class ClaimRole(SphinxRole):
    """`` {claim}`id` ``: a link to the claim `id` whose text is a form of the measured value and the verdict's mark.

    A withheld claim has neither; on the published site, whose sentences need their numbers, quoting it is an error.

    Args:
      form: returns the text before the mark; raises `ValueError` for a claim that has no such text.
    """

    def __init__(self, form: Callable[[Claim], str]):
        self.form = form

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link, or an error that fails a strict build."""
        note_shown(self.env, self.text)
        claims = {claim.id: claim for claim in (*all_withheld(self.env.app), *all_claims(self.env.app))}
        if self.text not in claims:
            return self._error(f"There is no claim {self.text!r}. {did_you_mean(self.text, claims)}")
        claim = claims[self.text]
        if isinstance(claim, PublishedWithheld):
            if self.config.companion_profile == DEFAULT_PROFILE:
                reason = as_plain_text(withheld_because(claim))
                return self._error(
                    f"The role `{self.name}` quotes the claim {claim.id!r}, which is {reason}. Remove the quotation, "
                    "or choose parameters at which it can be claimed."
                )
            label = [nodes.Text("(not claimed here)")]
        else:
            try:
                text = self.form(claim)
            except ValueError as error:
                return self._error(f"The role `{self.name}` of {self.text!r} {error}.")
            classes = ["companion-mark"] if claim.holds else ["companion-mark", "companion-fails"]
            before = nodes.Text(f"{text}\N{NO-BREAK SPACE}" if text else "")
            label = [before, nodes.inline("", mark(claim), classes=classes)]
        return [page_link(self.env, *place_of_claim(claim), *label, classes=["companion-claim"])], []

    def _error(self, sentence: str) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        message = self.inliner.reporter.error(sentence)
        return [nodes.problematic(self.rawtext, self.rawtext, refid=message)], [message]
