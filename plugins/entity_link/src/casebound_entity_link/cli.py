"""`casebound link`: propose, list, show, decide, status, verify. Commands parse, call and print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from typing import TYPE_CHECKING, Any

import click
from casebound.cli.common import print_json, print_nodes, print_note, print_table
from casebound.cli.given import Given, project_options

if TYPE_CHECKING:
    from casebound.api import Project

    from casebound_entity_link.link import Damaged, Link

_link_argument = click.argument("link", metavar="LINK")
_HOW_TO_DECIDE = "see `casebound link decide --help`; nothing was recorded"


@click.group(help="Entity links: suggestions about two entities of two cases, and what people decided about them.")
def link() -> None:
    """Group the commands."""


@link.command(
    help="Ask whether ENTITY of one CASE and ENTITY of another are one object. CASE is a case or package id, ENTITY an"
    " alias as `explain` prints it (N0001) or a typed id (host:12). The same proposal under the same settings is the"
    " same link: it goes on, or is shown again without a call. A suggestion merges nothing."
)
@click.argument("left", metavar="CASE ENTITY", nargs=2)
@click.argument("right", metavar="CASE ENTITY", nargs=2)
@click.option("--left-mention", "left_mentions", metavar="ALIAS", multiple=True, help="Show only this source (S0001).")
@click.option("--right-mention", "right_mentions", metavar="ALIAS", multiple=True, help="The same for the right side.")
@click.option("--resume", is_flag=True, help="Let a blocked link go on, not before its retry time.")
@project_options
def propose(
    left: tuple[str, str],
    right: tuple[str, str],
    left_mentions: tuple[str, ...],
    right_mentions: tuple[str, ...],
    resume: bool,
    given: Given,
    as_json: bool,
) -> int:
    """Propose a link and print it; status 1 where it waits."""
    from casebound_entity_link.journal import Journal
    from casebound_entity_link.sides import Wanted

    with given.open() as project:
        with redirect_stdout(sys.stderr), closing(Journal(project)) as journal:  # what a provider prints is no answer
            found = journal.propose(Wanted(*left, left_mentions), Wanted(*right, right_mentions), resume=resume)
        _print(found, as_json)
        return 0 if found.suggestion else 1


@link.command(name="list", help="List the links of the workspace, one a line; status 1 where one does not hold.")
@project_options
def list_(given: Given, as_json: bool) -> int:
    """Print every link, also one that cannot be read."""
    with given.open() as project:
        lines = []
        for found in _surveyed(project):
            lines.append(found.to_json())
            if as_json:
                print_json(lines[-1])
    if not as_json:
        print_table(["link", "state", "left", "right", "suggestion", "decision"], [_row(line) for line in lines])
    return 1 if any(line["state"] == "does_not_hold" for line in lines) else 0


def _row(line: dict[str, Any]) -> list[str]:
    if line["state"] == "does_not_hold":
        return [line["link"][:19], "does not hold", line["code"], line["folder"], "", ""]
    return [
        line["link"][:19],
        line["state"],
        *(f"{line[side]['package']} {line[side]['entity']} {line[side]['name']}" for side in ("left", "right")),
        str((line["suggestion"] or {}).get("assessment", "")),
        line["decision"]["decision"] if line["decision"] else "",
    ]


def _surveyed(project: Project) -> Iterator[Link | Damaged]:
    """Yield every link; what is wrong with one that cannot be read goes to standard error."""
    from casebound_entity_link.journal import Journal
    from casebound_entity_link.link import Damaged

    for found in Journal(project).survey():
        if isinstance(found, Damaged):
            print_note(str(found.error))
        yield found


@link.command(help="Show a LINK: what the model saw of both sides, every attempt, the suggestion, every decision.")
@_link_argument
@project_options
def show(link: str, given: Given, as_json: bool) -> None:
    """Print one link; nothing is changed."""
    from casebound_entity_link.journal import Journal
    from casebound_entity_link.picture import shown_nodes

    with given.open() as project:
        found = Journal(project).find(link)
        if as_json:
            print_json(found.shown())
        else:
            print_nodes(shown_nodes(found))


@link.command(
    help="Record what a person decided about the suggestion of a LINK. Decisions are appended; the last one counts."
)
@_link_argument
@click.option("--accept", is_flag=True, help="Accept the suggestion; exactly one of the two is given.")
@click.option("--reject", is_flag=True, help="Reject it.")
@click.option("--rationale", metavar="TEXT", required=True, help="Why.")
@click.option("--by", metavar="NAME", required=True, help="Who decides; nothing proves it.")
@project_options
def decide(link: str, accept: bool, reject: bool, rationale: str, by: str, given: Given, as_json: bool) -> None:
    """Append a decision and print the link."""
    from casebound.errors import SettingsError

    from casebound_entity_link.journal import Journal

    if accept == reject:  # both: the last word of two cannot be what somebody decided
        words = "--accept and --reject" if accept else "neither --accept nor --reject"
        raise SettingsError("USAGE", found=words, expected="exactly one of the two", hint=_HOW_TO_DECIDE)
    with given.open() as project:
        with redirect_stdout(sys.stderr):  # the link is verified first; what a plugin prints is no answer
            found = Journal(project).decide(link, "accepted" if accept else "rejected", rationale=rationale, by=by)
        _print(found, as_json)


@link.command(
    help="Count links, calls, outputs and decisions, each over its own whole. No count says how good suggestions are."
    " A link that does not hold is named, and not counted; then the status is 1."
)
@project_options
def status(given: Given, as_json: bool) -> int:
    """Print the counts."""
    from casebound_entity_link.figures import derive_figures
    from casebound_entity_link.link import Damaged

    with given.open() as project:
        surveyed = list(_surveyed(project))
        figures = derive_figures(found for found in surveyed if not isinstance(found, Damaged))
    damaged = [found.to_json() for found in surveyed if isinstance(found, Damaged)]
    named = [{key: line[key] for key in ("link", "folder", "code")} for line in damaged]
    if as_json:
        print_json({**figures, "does_not_hold": named})
    else:
        _print_counts(figures, named)
    return 1 if damaged else 0


def _print_counts(figures: dict[str, Any], named: list[dict[str, str]]) -> None:
    rows = [
        [group, name, str(count)]
        for group, counts in figures.items()
        if isinstance(counts, dict)
        for name, count in counts.items()
    ]
    rows += [["does not hold", f"{line['code']} {line['folder']}", "1"] for line in named]
    print_table(["of", "what", "count"], rows)


@link.command(help="Derive each LINK again from its own bytes and the packages of both sides, and compare; no call.")
@click.argument("links", metavar="LINK...", nargs=-1, required=True)
@project_options
def verify(links: tuple[str, ...], given: Given, as_json: bool) -> int:
    """Verify links in the order given; status 1 unless all of them are finished and hold."""
    from casebound.render.terminal import verification_nodes

    from casebound_entity_link.journal import Journal
    from casebound_entity_link.verification import verify_link

    status = 0
    with given.open() as project:
        for name in links:
            found = Journal(project).find(name)
            with redirect_stdout(sys.stderr):  # what a plugin prints is no answer
                verification = verify_link(found, project.workspace, project.host)
            status = status if verification else 1
            if as_json:
                print_json(verification.to_json())
            else:
                print_nodes(verification_nodes(verification))
    return status


def _print(found: Link, as_json: bool) -> None:
    if as_json:
        print_json(found.to_json())
        return
    from casebound_entity_link.picture import link_nodes

    print_nodes(link_nodes(found))
