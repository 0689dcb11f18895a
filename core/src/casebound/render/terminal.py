"""Pictures for a terminal or a pipe: a chain, a result, a case with its artifacts, a verification.

They are trees of `render.tree` that hold what the value holds, in its order; what is left out for room is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from casebound.render.chain import CandidateLink, CaptureLink, Chain, CitedLink, FactLink, Quote, SearchLink
from casebound.render.tree import Node, Piece, data, node, prose, whole

if TYPE_CHECKING:
    from casebound.verification import Verification

MOST_QUOTES = 6
STATUS_STYLES = {"selected": "bold green", "ambiguous": "bold yellow", "no_match": "yellow"}
STATE_STYLES = {"interpreted": "green", "blocked": "red", "review": "red", "refused": "red", "retry_pending": "yellow"}
SECTIONS = (
    "summary",
    "relevant_entities",
    "observed_behavior",
    "expected_behavior",
    "behavior_gap",
    "first_known_divergence",
    "described_behavior",
    "provisional_behavior_gap",
    "unknowns",
)
WHAT_ANSWERS_MEAN = {
    "holds": (
        "Holds proves consistency: every step follows again, byte for byte, from the package's own files. It does not"
        " prove who made the package, or that report, database and model really said what stands in it."
    ),
    "unfinished": (
        "Unfinished: what is there follows from the package's own files, but the case has no end yet, and no seal:"
        " `casebound show CASE` says what it waits for."
    ),
    "does_not_hold": (
        "Does not hold: the files that are named are not what casebound wrote, or not all of it. Trust nothing in the"
        " package; restore it from a copy."
    ),
    "plugin_missing": (
        "Does not hold, because it could not be judged here: install the distribution that is named, then verify again."
        " Nothing that could be judged speaks against the package."
    ),
}


# --- the chain ------------------------------------------------------------------------------------------------------


def chain_nodes(chain: Chain) -> list[Node]:
    """Return the picture of a chain: the ids that the report cites, then one tree a search."""
    title = ("  ", prose(chain.title)) if chain.title else ()
    code = ("  ", data(chain.code, "red")) if chain.code else ()
    head = node(
        data(chain.case_id or chain.package, "bold"),
        *_package_of(chain.case_id, chain.package),
        *title,
        "  ",
        _state(chain.state),
        *code,
    )
    trees = [head, *_answered_nodes(chain.answered_by), *map(_cited_node, chain.cited)]
    if chain.searches is None:
        return [*trees, node(Piece("nothing was looked up", "dim"))]
    if not chain.searches:
        return [*trees, node(Piece("the plan proposes no search", "dim"))]
    return [*trees, *map(_search_node, chain.searches)]


def _cited_node(cited: CitedLink) -> Node:
    rows: dict[tuple[str, str], list[FactLink]] = {}
    for fact in cited.facts:
        rows.setdefault((fact.rule, fact.capture), []).append(fact)
    captures = [
        node("capture of ", data(rule), "  ", whole(digest, "dim"), children=map(_fact_node, facts))
        for (rule, digest), facts in rows.items()
    ]
    return node(
        Piece(cited.alias, "cyan"),
        " ",
        data(f"{cited.type} {cited.id}", "bold"),
        "  cited by the report itself",
        children=[*_quote_nodes(cited.mentions), *captures],
    )


def _fact_node(fact: FactLink) -> Node:
    kinds = {"project_entity_name": " name, ", "project_description": " description, "}
    value = Piece(prose(fact.value).text, "bold" if fact.kind == "project_entity_name" else "")
    place = data(f"  {fact.pointer}", "dim")
    return node(Piece(fact.alias, "cyan"), kinds.get(fact.kind, " "), data(fact.column), "  ", value, place)


def _search_node(search: SearchLink) -> Node:
    children = [*_quote_nodes(search.mentions), node("because  ", prose(search.reason))]
    if search.capture is not None:
        children += [_capture_node(search.capture), _candidates_node(search.candidates)]
    children += _assessment_nodes(search)
    line = (f"search {search.index + 1}  ", Piece("“", "dim"), data(search.term, "bold"), Piece("”", "dim"))
    return node(*line, "  in ", data(search.catalog), "  as ", data(search.role), children=children)


def _capture_node(capture: CaptureLink) -> Node:
    kept = f"cut off ({capture.limit_met})" if capture.truncated else "complete"
    return node(
        "capture  ",
        Piece(capture.alias, "cyan"),
        f"  {capture.matched} matched, ",
        Piece(kept, "yellow" if capture.truncated else ""),
        "  snapshot ",
        data(capture.snapshot),
        children=[node(whole(capture.digest, "dim")), node(prose(capture.scope, "dim"))],
    )


def _candidates_node(candidates: Sequence[CandidateLink]) -> Node:
    return node("candidates" if candidates else "no candidate", children=map(_candidate_node, candidates))


def _candidate_node(row: CandidateLink) -> Node:
    mark = Piece("selected  ", "bold green") if row.selected else Piece("-  ", "dim")
    locale = ("  ", data(row.locale)) if row.locale else ()
    place = Piece(f"  {row.row}", "dim")
    return node(
        mark, data(f"{row.type} {row.id}"), "  ", data(row.name, "bold" if row.selected else ""), *locale, place
    )


def _assessment_nodes(search: SearchLink) -> Iterator[Node]:
    decided = search.assessment
    if decided is None:
        yield node(Piece("not assessed yet", "dim"))
        return
    entity = ("  ", data(f"{decided.type} {decided.id}"), "  as ", data(decided.role)) if decided.id else ()
    yield node(
        "assessment  ",
        Piece(decided.status, STATUS_STYLES.get(decided.status, "")),
        "  ",
        Piece(decided.alias, "cyan"),
        *entity,
        children=[node("because  ", prose(decided.reason)), node("cites  ", _aliases(decided.source_ids))],
    )


def _quote_nodes(quotes: Sequence[Quote]) -> Iterator[Node]:
    for quote in quotes[:MOST_QUOTES]:
        place = f"{quote.field or 'text'}[{quote.start}:{quote.end}]"
        yield node("mention  ", Piece(quote.source, "cyan"), f" {quote.kind}, {place}  ", *_quoted(quote))
    if len(quotes) > MOST_QUOTES:
        yield node(Piece(f"and {len(quotes) - MOST_QUOTES} more", "dim"))


def _quoted(quote: Quote) -> tuple[Piece, ...]:
    before, after = "… " if quote.cut_before else "", " …" if quote.cut_after else ""
    return (
        Piece(before + prose(quote.before).text, "dim"),
        Piece("«", "dim"),
        data(quote.text, "bold"),
        Piece("»", "dim"),
        Piece(prose(quote.after).text + after, "dim"),
    )


# --- a result -------------------------------------------------------------------------------------------------------


def result_nodes(
    line: Mapping[str, Any],
    *,
    summary: str | None = None,
    searches: int | None = None,
    options: str = "",
    runs: bool = False,
) -> list[Node]:
    """Return the picture of a result; its last lines are the paths.

    Args:
        line: what `Result.to_json` gives.
        summary: path of `summary.md`, None where there is none.
        searches: how many the plan proposes, None where there is none.
        options: what a later command needs to find the case again.
        runs: whether the workspace is one that `casebound run` works on; else reports are resolved one by one.
    """
    title = line["report"] or line["case_id"] or ""
    resolver = (f"  by {line['resolver']}",) if line["resolver"] else ()
    code = ("  ", data(line["code"], "red")) if line["code"] else ()
    children = [_result_entity(entity) for entity in line["entities"]]
    children += [_unresolved_node(item) for item in line["unresolved"]]
    if searches == 0:
        children.append(node(Piece("nothing was searched: the plan proposes no search", "yellow")))
    if line["package"]:
        children += [_calls_node(line["calls"], line["tokens"]), *_answered_nodes(line.get("answered_by", {}))]
    if line.get("error"):
        children.append(
            node("error  ", children=[node(prose(part.strip(), "red")) for part in line["error"].split("\n")])
        )
    if line.get("rejected"):
        children.append(_rejected_node(line["rejected"]))
    if line.get("replayed"):
        children.append(node("replies replayed from the recording  ", data(line["replayed"])))
    if advice := next_step(line, options, runs=runs):
        children.append(node("next  ", whole(advice)))
    if line["package"]:
        children.append(node("package  ", whole(line["package"], "cyan")))
    if summary:
        children.append(node("summary  ", whole(summary, "cyan")))
    package = _package_of(line["case_id"], PurePath(line["package"]).name) if line["package"] else ()
    return [node(data(title, "bold"), *package, "  ", _state(line["state"]), *resolver, *code, children=children)]


def _rejected_node(rejected: Mapping[str, Any]) -> Node:
    findings = [
        node(
            data(finding["code"], "red"),
            data(f"  {finding['path']}  " if finding["path"] else "  "),
            prose(finding["message"]),
        )
        for finding in rejected["findings"]
    ]
    left_out = [node(Piece(f"and {len(findings) - MOST_QUOTES} more", "dim"))] if len(findings) > MOST_QUOTES else []
    head = ("the last reply for ", data(rejected["stage"]), " was refused  ", whole(rejected["attempt"], "dim"))
    return node(*head, children=[*findings[:MOST_QUOTES], *left_out])


def next_step(line: Mapping[str, Any], options: str = "", *, runs: bool = False) -> str | None:
    """Return what a person may do next about a result; None where the error says it already. Arguments as there."""
    if not line["package"]:
        return None
    case = f"{PurePath(line['package']).name} {options}".rstrip()
    goes_on = f"casebound run --package-id {case}" if runs else "resolve the same report again"
    steps = {
        "interpreted": f"casebound explain {case}",
        "blocked": f"casebound resume {case}",
        "retry_pending": goes_on,  # never "repeat": a repeated `revise` asks everything anew
        "review": f"casebound show {case}, then casebound revise {case}",
    }
    step = steps.get(line["state"], f"{goes_on}: it goes on from here")
    if line["code"] == "BINDING_CHANGED":
        # Before anything is frozen there is no resolver, and nothing to revise.
        other = f"casebound revise {case}" if line["resolver"] else "resolve it with --package-id"
        back = step if line["state"] == "blocked" else goes_on
        step = f"put the settings back and {back}, or {other}"
    return f"{step}, not before {line['retry_at']}" if line.get("retry_at") else step


def _result_entity(entity: Mapping[str, Any]) -> Node:
    names = " / ".join(entity["names"]) or "(no name bound)"
    roles = ", ".join(link["role"] for link in entity["roles"])
    role = ("  ", data(roles, "green")) if roles else ()
    head = (data(f"{entity['type']} {entity['id']}", "bold green"), "  ", data(names, "bold"))
    places: dict[str, list[str]] = {}
    for mention in entity["mentions"]:
        sources = places.setdefault(mention["text"], [])
        if mention["source"] not in sources:
            sources.append(mention["source"])
    quotes = [node("«", data(text), "»  ", _aliases(sources)) for text, sources in places.items()]
    left_out = [node(Piece(f"and {len(quotes) - MOST_QUOTES} more", "dim"))] if len(quotes) > MOST_QUOTES else []
    return node(*head, *role, f"  {entity['origin']}", children=[*quotes[:MOST_QUOTES], *left_out])


def _unresolved_node(item: Mapping[str, Any]) -> Node:
    status = Piece(item["status"], STATUS_STYLES.get(item["status"], ""))
    cut = ("  ", Piece("cut off: more may match", "yellow")) if item["truncated"] else ()
    rows = [node("-  ", data(f"{row['type']} {row['id']}"), "  ", data(row["name"])) for row in item["candidates"]]
    return node(status, "  “", data(item["term"]), "”  in ", data(item["catalog"]), *cut, children=rows)


def _calls_node(calls: Mapping[str, int], tokens: Mapping[str, int | None]) -> Node:
    made = ", ".join(f"{stage} {count}" for stage, count in calls.items())
    used = ", ".join(f"{name} {'not reported' if count is None else count}" for name, count in tokens.items())
    return node(f"calls  {made}  tokens  {used}")


def _answered_nodes(answered_by: Mapping[str, Mapping[str, Any]]) -> Iterator[Node]:
    """Yield who answered each stage, where a fallback answered any."""
    if any(who["fallback"] for who in answered_by.values()):
        named = (
            f"{stage} by {' '.join(part for part in (who['provider'], who['model']) if part)}"
            f"{', a fallback' if who['fallback'] else ''}"
            for stage, who in answered_by.items()
        )
        yield node("answered  ", Piece("; ".join(prose(text).text for text in named), "yellow"))


# --- a case with its artifacts ----------------------------------------------------------------------------------------


def case_nodes(shown: Mapping[str, Any], options: str = "", *, runs: bool = False) -> list[Node]:
    """Return the picture of what `Project.show` gives: result, plan, candidates, assessment, interpretation.

    Args:
        shown: what `Project.show` gives.
        options: as of `result_nodes`.
        runs: as of `result_nodes`.
    """
    parts: dict[str, Callable[[Mapping[str, Any]], Iterable[Node]]] = {
        "plan": lambda value: map(_proposed_node, value["reply"]["searches"]),
        "candidates": lambda value: map(_listed_node, value["searches"]),
        "assessment": lambda value: map(_decided_node, value["reply"]["resolutions"]),
        "interpretation": lambda value: _reply_nodes(value["reply"]),
    }
    plan = shown["plan"]
    searches = None if plan is None else len(plan["reply"]["searches"])
    trees = result_nodes(shown, searches=searches, options=options, runs=runs)
    for name, nodes in parts.items():
        children = [node(Piece("none", "dim"))] if shown[name] is None else nodes(shown[name])
        trees.append(node(Piece(name, "bold"), children=children))
    return trees


def _proposed_node(search: Mapping[str, Any]) -> Node:
    line = ("“", data(search["term"], "bold"), "”  in ", data(search["catalog"]), "  as ", data(search["role"]), "  ")
    return node(*line, _aliases(search["source_ids"]), children=[node("because  ", prose(search["reason"]))])


def _listed_node(listed: Mapping[str, Any]) -> Node:
    kept = Piece("  cut off", "yellow") if listed["truncated"] else Piece("  complete", "dim")
    rows = [
        node(
            data(f"{row['type']} {row['id']}"),
            "  ",
            data(row["name"]),
            *(("  ", data(row["locale"])) if row["locale"] else ()),
        )
        for row in listed["candidates"]
    ]
    head = (f"search {listed['search_index'] + 1}  ", Piece(listed["alias"], "cyan"), kept)
    return node(*head, children=rows or [node(Piece("no candidate", "dim"))])


def _decided_node(decided: Mapping[str, Any]) -> Node:
    entity = decided["entity"]
    status = Piece(decided["status"], STATUS_STYLES.get(decided["status"], ""))
    what = ("  ", data(f"{entity['type']} {entity['id']}")) if entity else ()
    head = (f"search {decided['search_index'] + 1}  ", status, *what, "  as ", data(decided["role"]), "  ")
    return node(*head, _aliases(decided["source_ids"]), children=[node("because  ", prose(decided["reason"]))])


def _reply_nodes(reply: Mapping[str, Any]) -> Iterator[Node]:
    """Yield the sections of an interpretation, known ones in the order of reading; empty ones are left out."""
    for section in sorted(reply, key=lambda name: (SECTIONS.index(name) if name in SECTIONS else len(SECTIONS), name)):
        value = reply[section]
        statements = value if isinstance(value, list) else [value]
        statements = [statement for statement in statements if isinstance(statement, dict)]
        if statements:
            yield node(data(section.replace("_", " ")), children=map(_statement_node, statements))


def _statement_node(statement: Mapping[str, Any]) -> Node:
    text = statement.get("text", statement.get("reason", ""))
    labels = [str(statement[key]) for key in ("entity_id", "basis", "verification", "status") if key in statement]
    label = (data(", ".join(labels), "magenta"), "  ") if labels else ()
    return node(*label, prose(str(text)), "  ", _aliases(statement.get("source_ids", ())))


# --- a verification ---------------------------------------------------------------------------------------------------


def verification_nodes(verification: Verification) -> list[Node]:
    """Return the picture of a verification: the answer, and every finding with its file and pointer."""
    answers = {"holds": ("holds", "bold green"), "does_not_hold": ("does not hold", "bold red")}
    words, style = answers.get(verification.answer, ("is unfinished; what is there holds", "bold yellow"))
    findings = [
        node(
            data(finding.code, "red"),
            "  ",
            data(finding.file, "bold"),
            data(f" {finding.pointer}" if finding.pointer else ""),
            children=[node(prose(finding.message))],
        )
        for finding in verification.findings
    ]
    head = (whole(verification.package), "  ", Piece(words, style), f"  {verification.checked} files checked")
    return [node(*head, children=findings)]


def verification_notes(verifications: Iterable[Verification]) -> list[Node]:
    """Return what each of the answers that were given means, each once: what it proves, and what it does not."""
    given = {"plugin_missing" if one.only_plugins_missing else one.answer for one in verifications}
    return [node(Piece(text, "dim")) for answer, text in WHAT_ANSWERS_MEAN.items() if answer in given]


# --- pieces -----------------------------------------------------------------------------------------------------------


def _package_of(case_id: str | None, package: str) -> tuple[str | Piece, ...]:
    """Return what tells apart several packages of one report."""
    return () if case_id in (None, package) else ("  package ", data(package))


def _state(state: str) -> Piece:
    return Piece(state, STATE_STYLES.get(state, "yellow"))


def _aliases(names: Iterable[str]) -> Piece:
    return data(" ".join(names), "cyan")
