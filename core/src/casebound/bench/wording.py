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
ACCEPTANCE = (
    "A form says what one person found in one output. It changes no count, no reference and no receipt; and no program"
    " fills it in."
)

# What a reviewer is asked about an output, by the aspect that a frozen check has.
QUESTIONS = {
    "side": "Is every statement about the side that it names?",
    "scope": "Does every statement keep within the scope of its source?",
    "level": "Is the level of reference right: a kind of thing, one instance, one version?",
    "evidence": "Does the assessment rest on evidence of identity among the selected mentions?",
    "unknowns": "Does the rationale say what stays unknown?",
    "invention": "Is nothing invented?",
}

OF_CHECKS = (CLOSED_REFERENCES, AUTHOR_AGREEMENT, COST, STRUCTURAL_ONLY, SMALL_CORPUS)

LEAKAGE = (
    "The corpus parser prevents the leaks that it names: groups, case ids and selected texts that stand in two splits."
    " It does not find all semantic overlap between splits."
)
NOT_HIDDEN = (
    "Validation cases are public and authored: neither hidden nor blind. The corpus is small and is no sample of any"
    " population."
)
EXPOSED = (
    "Outputs were seen when this bundle was prepared. Whatever is tuned afterwards has seen them: its results on these"
    " cases are not those of an unseen validation."
)
DECLARATIONS = (
    "Metadata and constraints record which dependencies are declared, not every installed byte: of the libraries, only"
    " the trees of the validators are bound."
)
DECLARED_CLOSURE = (
    "The identity is a declared closure of files. It says nothing of the operating system, of accounts and credentials,"
    " or of the state of a model's provider."
)
REBUILDING = (
    "Any changed bound byte is another measurement and needs a new bundle and new receipts; building or installing"
    " again is not neutral by itself."
)
NO_AUTHORITY = (
    "Neither preparing nor reviewing permits a call: a live run needs a plan of its own and the confirmation of its id."
)

OF_A_BUNDLE = (LEAKAGE, NOT_HIDDEN, DECLARATIONS, DECLARED_CLOSURE, REBUILDING, NO_AUTHORITY, RECEIPTS)

# --- live runs ------------------------------------------------------------------------------------------------------

NO_CAPACITY_CLAIM = (
    "A live run does not establish that its executor meets the capacity contract of the production journal; production"
    " owns that boundary."
)
CALLS_ONLY = (
    "maxCalls caps the calls that this run makes. It does not cap the requests that an executor makes of its provider,"
    " nor tokens, nor money."
)
SYSTEM_TEXT = (
    "The governed system text is handed over by the production request adapter. It is not claimed to be the only system"
    " context: what else an executor brings is its own, as far as it declares it."
)
DECLARED_CONTEXT = (
    "An executor that runs a program gets a private working folder without the instructions of any project. Global"
    " skills, settings and an effort that the program has by default are declared context of the run, and not shut out."
)
CONSUMED = (
    "Cancelling, or losing the process, takes back neither requests nor fees. A cancelled slot was attempted; a"
    " reserved slot without evidence stays unknown and is never called again."
)
COST_AS_REPORTED = (
    "What an executor does not report as billed is unknown; a zero that was filled in does not stand for it."
)
NO_RESULT_AHEAD = "The plan says how the run is made. It asserts no result of any model in advance."
NOT_ACCEPTANCE = (
    "Neither a complete run nor exit status 0 of `bench live check` is acceptance: `bench check` counts, and people"
    " review."
)

NOT_DERIVED_AGAIN = (
    "Bundle or executor are not installed here as they were, or the executor runs a program: what was derived from the"
    " replies was compared by digests only, and not all of it was derived again."
)

OF_A_PLAN = (
    NO_CAPACITY_CLAIM,
    CALLS_ONLY,
    SYSTEM_TEXT,
    DECLARED_CONTEXT,
    CONSUMED,
    COST_AS_REPORTED,
    NO_RESULT_AHEAD,
    NOT_ACCEPTANCE,
)

# --- comparisons ----------------------------------------------------------------------------------------------------

COMPLETE_REQUESTS = (
    "This is a comparison of complete requests. Several things may differ at once, so what differs in the results is no"
    " isolated effect of prompt, schema, examples or output mode."
)
COUNTS_ONLY = (
    "The counts are of these cases under these requests. That one is larger than the other does not show that one model"
    " or request is better than the other."
)
PAIRED = "Both runs have the same cases, so their intervals say nothing about the difference between the runs."
EXACT_INTERVALS = (
    "Exact binomial intervals (Clopper and Pearson) at 95 %, rounded outwards, as if the slots were independent draws;"
    " authored cases are no sample, so they show how little a few slots can say, and no more."
)
INTERVALS_NEED_LIBRARY = "No intervals: the library for them is not installed (pip install 'casebound[intervals]')."
REPEATS_ARE_DEPENDENT = "No intervals: the repeats of one case are not independent of each other."
INCOMPLETE_RUN = (
    "No intervals: a run is incomplete. What stopped it decided how many slots there are, so its counts are no draws of"
    " a fixed number."
)

OF_COMPARISONS = (COUNTS_ONLY, PAIRED)
