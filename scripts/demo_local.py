"""Run the embedded demo three times, each time with another semantic stage on a small local model: `make demo-local`.

The other stages stay with the offline rules. The model has 135 million parameters: its replies have the right shape
where the server enforces it, and in every run so far they did not end before the cap. What it got right is printed as
it is; three invalid replies end in review, and that is an honest end.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import casebound
from casebound.demo import run_demo
from casebound.result import Result

sys.path.insert(0, str(Path(__file__).parent))
from local_model import NAME, NoModel, running

# So small a model repeats itself up to the cap at any temperature that was tried; with a seed, one build does it alike.
STAGES = ("plan", "assessment", "interpretation")
SETTINGS = """\
[llm]
provider = "offline"

[llm.stage.{stage}]
provider = "openai"
model = "{model}"
response_format = "json_schema"
max_output_tokens = 320
incomplete_cap_factor = 1
timeout_s = 3600

[llm.openai]
base_url = "{base_url}"
strict_schema = false
temperature = 1
seed = 1
"""


def identities(result: Result) -> set[tuple[str, str]]:
    """Return what a result selected, by type and id."""
    return {(entity["type"], entity["id"]) for entity in result.entities if entity["origin"] == "resolved"}


def endings(package: Path, stage: str) -> Iterator[str]:
    """Yield how each attempt of a stage ended, in order."""
    for path in sorted(package.rglob(f"{stage}-*/outcome.json")):
        outcome = json.loads(path.read_bytes())
        yield outcome["code"] or outcome["kind"]


def main() -> int:
    """Run all three and print what came of them; 0 unless something failed that is not the model's."""
    folder = Path(tempfile.mkdtemp(prefix="casebound-local-"))
    [offline] = run_demo(workspace=folder / "offline").results
    expected = identities(offline)
    print(f"with the offline rules alone: {offline.state}, selected {sorted(expected)}")
    failed = 0
    with running() as base_url:
        for stage in STAGES:
            result = with_model(stage, folder, base_url)
            failed += result.state not in {"interpreted", "review"}
            print(f"\n{stage} by {NAME}: {result.state}{f' ({result.code})' if result.code else ''}")
            print(f"  replies: {', '.join(endings(Path(result.package or folder), stage)) or 'none'}")
            found = identities(result)
            right = "yes" if found == expected else f"no, {sorted(found) or 'nothing'}"
            whose = " (by the rules: this stage selects none)" if stage == "interpretation" else ""
            print(f"  the expected identities selected: {right}{whose}")
            print(f"  tokens: {dict(result.tokens or {})}")
            if result.package:
                print(f"  verify: {casebound.verify(result.package).answer}, {result.package}", flush=True)
    return int(failed > 0)


def with_model(stage: str, folder: Path, base_url: str) -> Result:
    """Resolve the demo's report with one stage on the model, in a workspace of its own."""
    llm_config = folder / f"{stage}.toml"
    llm_config.write_text(SETTINGS.format(stage=stage, model=NAME, base_url=base_url), encoding="utf-8")
    sample = folder / "offline"
    [result] = casebound.resolve(
        sample / "report.md",
        project_config=sample / "casebound.toml",
        llm_config=llm_config,
        workspace=folder / stage,
    )
    return result


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except NoModel as exc:
        raise SystemExit(f"demo-local: {exc}") from None
