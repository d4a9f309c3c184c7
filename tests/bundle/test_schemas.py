"""The published schemas are fresh, accept every real file, and refuse what they can see is damaged."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from spyrec.bundle.manifest_json import bundle_schema
from spyrec.bundle.spyrecode_json import write_plan
from spyrec.bundle.spyrecode_schema import spyrecode_schema
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_schema import superdsc_schema
from spyrec.bundle.superdsc_writer import to_bytes
from tests.emulator.builders import superdsc_of
from tests.emulator.test_data_dscs import FOUR, MIXED, mixed, steps
from tests.emulator.test_several_dscs import add
from tests.foreign import EXAMPLES, argument_table
from tests.handmade import add_bundle
from tests.support.artifacts import artifact, example
from tests.support.unequal import divided, shared, with_schedule

SCHEMAS = Path(__file__).parents[2] / "schemas"
Json = Any

SUPERDSC: Json = Draft202012Validator(json.loads(superdsc_schema()))
MANIFEST: Json = Draft202012Validator(json.loads(bundle_schema()))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("superdsc.schema.json", superdsc_schema),
        ("bundle.schema.json", bundle_schema),
        ("spyrecode.schema.json", spyrecode_schema),
    ],
)
def test_the_committed_schema_is_fresh_and_a_schema(name: str, text: Callable[[], str]) -> None:
    assert (SCHEMAS / name).read_text() == text()
    Draft202012Validator.check_schema(json.loads(text()))


WINDOWS = ("avgpool_k2s2", "avgpool_split_rows", "conv2d_k3_split_rows", "depthwise_k1", "depthwise_k3")
REAL = [
    *EXAMPLES.glob("*/sdsc_0.json"),
    *(EXAMPLES.parent / "examples_2026_08" / name / "sdsc_0.json" for name in WINDOWS),
]


@pytest.mark.parametrize("path", sorted(REAL), ids=lambda path: path.parent.name)
def test_every_real_superdsc_obeys_the_schema(path: Path) -> None:
    SUPERDSC.validate(json.loads(path.read_text()))


@pytest.mark.parametrize(
    "superdsc",
    [
        mixed(steps(FOUR, *MIXED)),
        with_schedule(divided(superdsc_of(add(7, 192)), {"rows": (3, 2, 2)}), shares=shared(Tensor0=[[0], [1]])),
    ],
)
def test_several_dscs_and_data_dscs_obey_the_schema(superdsc: SuperDsc) -> None:
    SUPERDSC.validate(json.loads(to_bytes(superdsc)))


DAMAGES: list[Callable[[Json], None]] = [
    lambda dsc: dsc.pop("N_"),
    lambda dsc: dsc["N_"].update(mb_=0),
    lambda dsc: dsc["labeledDs_"][0].update(dataFormat_="FP128"),
    lambda dsc: dsc["scheduleTree_"][0].update(component_="l3"),
    lambda dsc: dsc["scheduleTree_"][0].update(padding_={"mb": "mirrored"}),
    lambda dsc: dsc["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"].update({"[0, 0, 0]": "0x0"}),
    lambda dsc: dsc["computeOp_"].append({}),
    lambda dsc: dsc.update(constantInfo_="{"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_schema_refuses_damage(damage: Callable[[Json], None]) -> None:
    data = json.loads((EXAMPLES / "add" / "sdsc_0.json").read_text())
    damage(data["0_add"]["dscs_"][0]["add"])
    assert not SUPERDSC.is_valid(data)


def test_manifest_and_argument_table_obey_the_schema(tmp_path: Path) -> None:
    add_bundle(tmp_path).save(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    MANIFEST.validate(manifest)
    for key in manifest.keys() - {"dialect", "lx", "traffic", "tile_contract", "planned_with"}:
        broken = copy.deepcopy(manifest)
        del broken[key]
        assert not MANIFEST.is_valid(broken), key
    schema = json.loads(bundle_schema())
    table: Json = Draft202012Validator({"$ref": "#/$defs/ForeignTableModel", "$defs": schema["$defs"]})
    table.validate(argument_table("pool_symbolic"))
    assert not table.is_valid({"format": "spyrec.args/1"})


PLAN_DAMAGES: list[Callable[[Json], object]] = [
    lambda plan: plan.pop("schemaVersion"),
    lambda plan: plan.update(schemaVersion="2"),
    lambda plan: plan["JobPreparationPlan"].reverse(),
    lambda plan: plan["JobPreparationPlan"].pop(),
    lambda plan: plan["JobPreparationPlan"][0]["properties"].update(size="12abc"),
    lambda plan: plan["JobExecPlan"][0]["properties"].pop("hcm"),
    lambda plan: plan["JobExecPlan"][0]["properties"]["hcm"]["spyrec"]["words"].append({"kind": "code"}),
    lambda plan: plan["JobExecPlan"][1]["properties"].update(dirn="False"),
    lambda plan: plan["JobExecPlan"][2].update(command="Reboot"),
    lambda plan: plan["correctionSlots"][0].pop("dev_ptr"),
]


@pytest.mark.parametrize("case", ["add", "add_symbolic", "pool_symbolic"])
def test_launch_plans_obey_their_schema_and_damaged_ones_do_not(case: str, tmp_path: Path) -> None:
    schema: Json = Draft202012Validator(json.loads(spyrecode_schema()))
    plan: Json = json.loads(write_plan(artifact(example(case, tmp_path), 2)))
    schema.validate(plan)
    schema.validate({**plan, "note": "an extra key is a warning"})
    for damage in PLAN_DAMAGES if plan["correctionSlots"] else ():
        broken = copy.deepcopy(plan)
        damage(broken)
        assert not schema.is_valid(broken)
