"""`bench`: frozen benchmarks of a prompt. Other modules of this folder hold what is added below."""

from __future__ import annotations

import click


@click.group(help="Prepare and check frozen benchmarks of a prompt.")
def bench() -> None:
    """Hold the commands about benchmarks."""
