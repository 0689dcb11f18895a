"""What the numbers and receipts of a benchmark do not say: the sentences that stand in every report of them.

Each stands here once, so that no report can soften it. They are published text; a test holds what they must mention.
"""

from __future__ import annotations

CLOSED_REFERENCES = (
    "An admitted output refers to nothing outside its input; that establishes neither a correct identity nor a"
    " supported rationale."
)
AUTHOR_AGREEMENT = (
    "Agreement is agreement with the labels of the corpus's authors. It is not independent accuracy, and it scores no"
    " rationale."
)
COST = (
    "A cost that nobody reported is unknown. Neither a zero that was filled in nor costs of a part of the records make"
    " a run that cost nothing; what was not attempted is in no cost."
)
STRUCTURAL_ONLY = (
    "Exit status 0 means that the structural checks are complete. It is neither semantic nor independent acceptance."
)
RECEIPTS = (
    "A receipt proves that its record is closed and what its reviewer attests. It proves neither who the reviewer is"
    " nor that the references are right, and it reviews no output."
)
EXPLORATORY = "Exploratory results may support development. They are neither gold nor a complete acceptance of quality."
INDEPENDENT_MISSING = "There is no independent review by a person; nothing stands in for it."
SMALL_CORPUS = (
    "A few synthetic cases do not establish overall accuracy, stability, coverage of real dialogues, automatic identity"
    " across agents, or a benefit for any task."
)
SELECTION = "The run covers a selection of the split's cases, and says nothing of the others."
CLOCK_ONLY = "Only clocks say that the reviews came before the outputs: the run was not bound to every receipt."
LATE_DISPUTE = (
    "A dispute about a reference that began after the output changes nothing here; a new reference needs a new version"
    " of the corpus, and this result is not scored again."
)

OF_CHECKS = (CLOSED_REFERENCES, AUTHOR_AGREEMENT, COST, STRUCTURAL_ONLY, SMALL_CORPUS)
