"""A live run of the entity-link benchmark against llama.cpp with a real small model; see `scripts/local_model.py`.

What the model says is nonsense, so nothing here looks at the content: that each slot is called once at most, that the
evidence is the server's own, and that the run ends as the rules say, is real.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from casebound.cli.program import run

for plugin in ("casebound_bench_entity_link", "casebound_entity_link", "casebound_llm_offline", "casebound_llm_openai"):
    pytest.importorskip(plugin)

pytestmark = pytest.mark.foreign

CASES = "dev-path-only,dev-assistant-guess"


def reviewed(folder: Path) -> Path:
    assert run(["bench", "prepare", "entity-link", "--output", str(folder / "draft")]) == 0
    form = json.loads((folder / "draft/author-review.template.json").read_bytes())
    form["reviewer"] = json.loads((folder / "draft/corpus.json").read_bytes())["authors"][0]
    form["reviewedAt"], form["reviewedBeforeOutputs"] = "2026-01-01T08:00:00.000Z", True
    form["decisions"] = [{**each, "decision": "approved", "rationale": "read"} for each in form["decisions"]]
    (folder / "form.json").write_text(json.dumps(form), encoding="utf-8")
    flags = ["--self-review", str(folder / "form.json"), "--output", str(folder / "bundle")]
    assert run(["bench", "prepare", "entity-link", *flags]) == 0
    return folder / "bundle"


def test_a_real_model_is_asked_once_a_slot_and_stands_beside_the_rules(
    model, model_key, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("LOCAL_KEY", model_key)
    config = tmp_path / "local.toml"
    config.write_text(
        f'[llm]\nmax_output_tokens = 160\ntimeout_s = 600\n[llm.openai]\nbase_url = "{model}"\n'
        'api_key_env = "LOCAL_KEY"\nstrict_schema = false\ntemperature = 0\nseed = 1\n'
    )
    bundle, runs = reviewed(tmp_path), {"rules": ["offline"], "model": ["openai", "--model", "local"]}
    for name, executor in runs.items():
        flags = ["--bundle", str(bundle), "--out", str(tmp_path / name), "--split", "development", "--cases", CASES]
        flags += ["--max-calls", "2", "--llm-config", str(config), "--executor", *executor]
        assert run(["bench", "live", "prepare", *flags]) == 0
        plan = json.loads((tmp_path / name / "plan.json").read_bytes())["planId"]
        status = run(["bench", "live", "execute", "--out", str(tmp_path / name), "--confirm-plan", plan])
        capsys.readouterr()
        assert run(["bench", "live", "check", "--out", str(tmp_path / name), "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert status == (0 if found["complete"] and not found["stopped"] else 1)
        assert found["complete"] or found["stopped"]
    native = json.loads((tmp_path / "model/slots/0001/native.bin").read_bytes())
    record = json.loads((tmp_path / "model/slots/0001/record.json").read_bytes())
    assert record["output"]["text"] == native["choices"][0]["message"]["content"]
    assert record["usage"]["output_tokens"] == native["usage"]["completion_tokens"] > 0
    assert run(["bench", "compare", str(tmp_path / "rules"), str(tmp_path / "model"), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["differs"]) == ("one_measurement", ["executor", "model"])
    assert [slot["caseId"] for slot in report["slots"]] == CASES.split(",")
