"""The red line: the names of the contract are those of its list, in C and in Python, and none is a scenario's."""

from __future__ import annotations

import re

import pytest

import spyrec.exec
from spyrec.exec import Buffer, Context, Event, Graph, Plan, flat, flat_backend
from spyrec.exec.cabi.header import functions
from spyrec.exec.errors import Status

CONTRACT = [
    "ctx_create",
    "ctx_destroy",
    "ctx_stream",
    "ctx_wrap_stream",
    "ctx_event",
    "event_destroy",
    "event_record",
    "stream_wait",
    "buffer_alloc",
    "buffer_wrap",
    "buffer_dptr",
    "buffer_bytes",
    "buffer_name",
    "buffer_copy",
    "graph_create",
    "graph_destroy",
    "graph_capture",
    "graph_adopt",
    "graph_bind",
    "graph_replay",
    "graph_has_variant",
    "plan_create",
    "plan_destroy",
    "plan_add",
    "plan_after",
    "plan_execute",
    "plan_sync",
]
"""The seed's functions, and those that its text and its header have beside its listing."""

ADDED = ["buffer_destroy"]
"""What this project adds: a buffer's memory must not have to wait for its context's end."""

PYTHON = {
    Context: "buffer_alloc buffer_copy buffer_wrap destroy event graph plan stream stream_wait wrap_stream",
    Buffer: "bytes destroy dptr name",
    Event: "destroy record",
    Graph: "adopt bind capture destroy has_variant replay",
    Plan: "add after destroy execute sync",
}
BESIDE = {
    Context: "device forget lock own require_alive require_own runtime_stream",
    Buffer: "context held is_destroyed is_owned place tensor",
    Event: "context let_wait",
    Graph: "context max_variants name port ready require_alive",
    Plan: "context",
}
"""What the classes have for each other, and for who works with the runtime, too."""

POLICY = re.compile(r"session|cache|kv|sched|deadline|preempt|protocol|agent|llm|vla|token|prompt|batch|family|hint")


def public(item: object) -> set[str]:
    return {name for name in dir(item) if not name.startswith("_")}


def test_the_header_declares_the_contract_and_nothing_else() -> None:
    assert [item.name for item in functions("exec.h")] == sorted(
        (f"frt_{name}" for name in [*CONTRACT, *ADDED]), key=[item.name for item in functions("exec.h")].index
    )


@pytest.mark.parametrize(("header", "module"), [("exec.h", flat), ("spyrec.h", flat_backend)])
def test_the_flat_functions_are_those_of_the_headers(header: str, module: object) -> None:
    prefix = "frt_" if header == "exec.h" else "spyrec_"
    declared = {item.name for item in functions(header)}
    assert {name for name in public(module) if name.startswith(prefix)} == declared
    assert all(name.startswith(prefix) for name in declared)


@pytest.mark.parametrize("kind", PYTHON, ids=lambda item: item.__name__)
def test_the_classes_have_the_contracts_verbs(kind: type) -> None:
    allowed = set(PYTHON[kind].split()) | set(BESIDE[kind].split())
    with Context() as context:
        made = {
            Context: lambda: context,
            Buffer: lambda: context.buffer_alloc("x", 8),
            Event: context.event,
            Graph: lambda: context.graph("g"),
            Plan: context.plan,
        }[kind]()
        assert public(made) == allowed


def test_no_name_is_one_of_a_policy() -> None:
    names = {item.name for header in ("exec.h", "spyrec.h") for item in functions(header)} | set(spyrec.exec.__all__)
    parameters = {parameter.name for item in functions("exec.h") for parameter in item.parameters}
    assert not [name for name in names | parameters if POLICY.search(name.lower())]


def test_the_statuses_have_the_values_of_the_header() -> None:
    from spyrec.exec.cabi.header import include_directory

    text = (include_directory() / "flashrt" / "exec.h").read_text(encoding="utf-8")
    found = {name: int(value) for name, value in re.findall(r"#define FRT_(?:ERR_)?(\w+) \(?(-?\d+)\)?", text)}
    assert found == {status.name: status.value for status in Status}
