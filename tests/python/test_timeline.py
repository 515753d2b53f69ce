"""Timelines, read back with the classes of the perfetto package."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

import flashtwin

WHOLE = flashtwin.Window(0, 1e4)
LOAD = "zipf:theta=0.9,write=0.7,size=8k,rate=3k/s,requests=800"
ARRAY = {
    "array.level": "raid5",
    "array.members": "harmonia*4",
    "array.coordination": "inclusive",
    "buffer.capacity": "1 MiB",
    "member.geometry.chips": 2,
    "member.geometry.blocks_per_plane": 48,
}
MODERN = {
    "nand.backend": "modern",
    "geometry.channels": 2,
    "nand.suspend": True,
    "nand.read_priority": True,
    "nand.cached_commands": True,
    "nand.copy_back": False,
}
# A device, its settings, and names that must be in its timeline.
CASES: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "msr": ("ecr", {}, {"destage", "fill", "gc_move", "erase", "gc", "victim"}),
    "units": ("demo", {}, {"destage", "gc_move"}),
    "modern": ("ecr", MODERN, {"suspended", "second register", "channel 0", "gc_move"}),
    "no buffer": ("ecr", MODERN | {"buffer": "none"}, {"host_read", "host_write"}),
    "planes": ("nvme-tlc", {}, {"plane"}),
    "chip ftl": ("ecr", {"ftl.kind": "fast"}, {"merge_copy"}),
    "map": ("ecr", {"ftl.kind": "dftl", "nand.backend": "modern", "geometry.channels": 1}, {"map_read"}),
    "array": ("harmonia-array", ARRAY, {"FORCE_GC", "ordered to collect", "member 3", "REQUEST_GGC"}),
}
SMALL = {
    "geometry.chips": 4,
    "geometry.planes_per_chip": 1,
    "geometry.blocks_per_plane": 48,
    "buffer.capacity": "256 KiB",
}


@dataclass(eq=False)
class Slice:
    """A slice, or an instant."""

    path: str
    name: str
    begin: int
    details: dict[str, Any]
    starts: list[int]
    ends: list[int]
    end: int = -1


@dataclass
class Trace:
    """A timeline in the format of Perfetto, read without any knowledge of flashtwin."""

    slices: dict[int, list[Slice]] = field(default_factory=lambda: defaultdict(list))
    instants: list[Slice] = field(default_factory=list)
    counters: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def all(self) -> list[Slice]:
        return [each for of_track in self.slices.values() for each in of_track]

    def words(self) -> set[str]:
        """Return all names of slices, instants, details and tracks."""
        found = [*self.all(), *self.instants]
        parts = {part for each in found for part in each.path.split("/")}
        return parts | {each.name for each in found} | {key for each in found for key in each.details}


def value(detail: pb.DebugAnnotation) -> Any:
    if detail.array_values:
        return [value(each) for each in detail.array_values]
    return getattr(detail, detail.WhichOneof("value"))


def read(timeline: flashtwin.Timeline | None) -> Trace:
    assert timeline is not None
    packets = pb.Trace.FromString(timeline.trace).packet
    first = packets[0]
    assert first.sequence_flags & pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    names = {each.iid: each.name for each in first.interned_data.event_names}
    keys = {each.iid: each.name for each in first.interned_data.debug_annotation_names}
    tracks: dict[int, tuple[str, bool]] = {}
    trace = Trace()
    now = 0
    for packet in packets[1:]:
        assert packet.trusted_packet_sequence_id == first.trusted_packet_sequence_id != 0
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            above = f"{tracks[track.parent_uuid][0]}/" if track.parent_uuid else ""
            assert track.uuid not in tracks
            tracks[track.uuid] = (above + track.name, track.HasField("counter"))
            continue
        event = packet.track_event
        assert packet.timestamp >= now
        now = packet.timestamp
        path, counts = tracks[event.track_uuid]
        if event.type == pb.TrackEvent.TYPE_COUNTER:
            assert counts
            trace.counters[path].append((now, event.counter_value))
            continue
        of_track = trace.slices[event.track_uuid]
        if event.type == pb.TrackEvent.TYPE_SLICE_END:
            assert of_track[-1].end == -1, f"{path}: an end without a beginning"
            of_track[-1].end = now
            continue
        assert packet.sequence_flags == pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        details = {keys[each.name_iid]: value(each) for each in event.debug_annotations}
        flows = list(event.flow_ids), list(event.terminating_flow_ids)
        made = Slice(path, names[event.name_iid], now, details, *flows)
        if event.type == pb.TrackEvent.TYPE_INSTANT:
            trace.instants.append(made)
            continue
        assert event.type == pb.TrackEvent.TYPE_SLICE_BEGIN
        assert not of_track or of_track[-1].end >= 0, f"{path}: two things at a time"
        of_track.append(made)
    assert len(trace.all()) == len(timeline)
    return trace


def run(case: str, window: flashtwin.Window, **more: Any) -> flashtwin.Result:
    device, settings, _ = CASES[case]
    small = {} if device != "ecr" else SMALL
    if settings.get("buffer") == "none":
        small = {key: small[key] for key in small if not key.startswith("buffer")}
    load = LOAD.replace("rate=3k/s", "rate=40k/s") if device == "nvme-tlc" else LOAD
    return flashtwin.run(load, device=device, set=small | settings, timeline=window, **more)


@cache
def whole(case: str) -> Trace:
    """Record a whole run of a case."""
    return read(run(case, WHOLE).timeline)


def duration(each: Slice) -> int:
    return int(each.details["duration_ps"])


@pytest.mark.parametrize("case", CASES)
def test_slices_do_not_overlap_and_links_connect(case: str) -> None:
    trace = whole(case)
    assert trace.words() >= CASES[case][2]
    starts, ends = {}, {}
    for of_track in trace.slices.values():
        for before, after in itertools.pairwise(of_track):
            assert before.end <= after.begin
        for each in of_track:
            assert "unfinished" not in each.details
            assert abs((each.end - each.begin) * 1000 - duration(each)) < 1000
            for flow in each.starts:
                assert starts.setdefault(flow, each) is each
            for flow in each.ends:
                assert ends.setdefault(flow, each) is each
    assert starts.keys() == ends.keys()
    assert starts
    for flow, cause in starts.items():
        assert cause.begin <= ends[flow].begin
        assert cause is not ends[flow]
    # Every operation that the host waits for is linked to a request.
    of_host = [each for each in trace.all() if each.name in {"host_read", "fill"} and "die" in each.path]
    assert of_host or case == "planes"
    assert all(each.ends for each in of_host)


@pytest.mark.parametrize("case", ["msr", "modern", "no buffer", "chip ftl", "map"])
def test_durations_and_counts_are_the_model_s(case: str) -> None:
    result = run(case, WHOLE, log=True)
    trace = read(result.timeline)
    flash = result.summary["flash"]
    busy, collecting, pages = Counter[str](), Counter[str](), Counter[str]()
    for each in trace.all():
        place = each.path.partition("dies/")[2]
        if place.endswith("/garbage collection"):
            collecting[place.partition("/")[0]] += duration(each)
        elif place and "/" not in place:
            busy[place] += duration(each)
            if "suspended" not in each.details and (case != "modern" or each.name != "gc_move"):
                lpn = each.details.get("lpn")
                count = len(lpn) if isinstance(lpn, list) else 1
                pages[each.name] += each.details.get("pages", count)
    gc_ms = [collecting[f"die {die}"] * 1e-9 for die in range(4)]
    assert gc_ms == pytest.approx(flash["gc_time_ms_by_chip"])
    span_ps = result.summary["span_s"] * 1e12
    assert sum(busy.values()) / 4 == pytest.approx(flash["busy_share_mean"] * span_ps)
    assert max(busy.values()) == pytest.approx(flash["busy_share_max"] * span_ps)
    counts = result.summary["counts"]
    accesses = counts["reads"]["requests"] + counts["writes"]["requests"]
    assert sum(busy.values()) * 1e-6 == pytest.approx(result.summary["flash_us_per_request"] * accesses)
    counted = {op["name"]: op["count"] for op in flash["ops"]}
    for name in ("host_read", "fill", "host_write", "destage", "map_read", "merge_copy", "erase"):
        assert pages[name] == counted[name], name
    # Slices of requests have the durations in the request log.
    assert result.requests is not None
    logged = dict(zip(*(result.requests[key].to_pylist() for key in ("request", "response_ps")), strict=True))
    shown = {e.details["request"]: duration(e) for e in trace.all() if e.path.startswith("requests/")}
    assert shown == logged


def test_evictions_are_linked_to_their_request() -> None:
    trace = whole("msr")
    starts = {flow: each for each in trace.all() for flow in each.starts}
    evicted = defaultdict(set)
    for each in trace.instants:
        if each.name == "evict dirty":
            evicted[each.details["lpn"]].add(each.details["request"])
    destages = [e for e in trace.all() if e.name == "destage" and "die" in e.path]
    assert destages
    for each in destages:
        causes = {starts[flow].details["request"] for flow in each.ends}
        assert causes <= evicted[each.details["lpn"]]
        assert len(causes) == 1


def test_member_operations_are_linked_to_the_array_and_to_requests() -> None:
    trace = whole("array")
    starts = {flow: each for each in trace.all() for flow in each.starts}
    asked = [e for e in trace.all() if e.path.startswith("member") and "/requests/" in e.path]
    assert {each.details["for"] for each in asked} == {"pages", "stripe"}
    done = [e for e in trace.all() if "/dies/" in e.path and e.name in {"host_read", "host_write"}]
    assert done
    for each in done:
        (cause,) = (starts[flow] for flow in each.ends)
        assert cause.path.split("/")[0] == each.path.split("/")[0]
        assert cause.begin <= each.begin < each.end <= cause.end
        assert cause.details["lpn"] <= each.details["lpn"] < cause.details["lpn"] + cause.details["pages"]
    for each in asked:
        assert each.ends
        assert all(starts[flow].path.startswith("requests/") for flow in each.ends)


def test_a_suspended_program_resumes() -> None:
    trace = whole("modern")
    starts = {flow: each for each in trace.all() for flow in each.starts}
    before = {id(starts[flow]): each for each in trace.all() for flow in each.ends}
    suspended = [each for each in trace.all() if "suspended" in each.details]
    assert suspended
    for each in suspended:
        rest = before[id(each)]
        assert (rest.path, rest.name) == (each.path, each.name)
        of_die = next(all_of for all_of in trace.slices.values() if each in all_of)
        between = [other.name for other in of_die[of_die.index(each) + 1 : of_die.index(rest)]]
        assert between
        assert set(between) <= {"fill", "host_read", "padding_read"}


def test_counters_begin_with_the_window_and_end_with_an_empty_device() -> None:
    trace = whole("array")
    requests = trace.counters["requests in the device"]
    assert requests[0] == (0, 0)
    assert requests[-1][1] == 0
    assert max(n for _, n in requests) > 1
    assert any(n for _, n in trace.counters["dirty pages"])
    free = [trace.counters[f"member {member}/free blocks"] for member in range(4)]
    assert all(of_member[0][0] == 0 for of_member in free)
    assert any(len(of_member) > 1 for of_member in free)


def test_a_window_holds_the_slices_that_begin_in_it() -> None:
    window = flashtwin.Window(0.1, 0.05)
    part = read(run("array", window).timeline)
    begun = [each for each in part.all() if "suspended" not in each.details]
    assert begun
    assert all(100_000_000 <= each.begin < 150_000_000 for each in begun)

    def of_requests(trace: Trace) -> list[tuple[Any, ...]]:
        found = [e for e in trace.all() if e.path.startswith("requests/") and 1e8 <= e.begin < 1.5e8]
        return sorted((e.details["request"], e.begin, e.end) for e in found)

    assert of_requests(part) == of_requests(whole("array"))


def test_a_timeline_changes_no_result_and_is_the_same_each_time() -> None:
    plain = flashtwin.run(LOAD, device="demo")
    first, second = (flashtwin.run(LOAD, device="demo", timeline=flashtwin.Window()) for _ in range(2))
    assert plain.timeline is None
    assert plain.to_json() == first.to_json()
    assert first.timeline == second.timeline


@pytest.mark.parametrize(("begin_s", "length_s"), [(-1, 1), (0, 0), (0, float("nan")), (1e9, 1)])
def test_wrong_windows_are_refused(begin_s: float, length_s: float) -> None:
    with pytest.raises(flashtwin.FlashtwinError, match="timeline window of"):
        flashtwin.run(LOAD, device="demo", timeline=flashtwin.Window(begin_s, length_s))


def test_the_command_writes_a_timeline(cli: Any, tmp_path: Any) -> None:
    out = tmp_path / "out.perfetto-trace"
    load = ("run", "--workload", LOAD, "--device", "demo")
    done = cli(*load, "--timeline", out, "--timeline-window", "100ms+20ms")
    assert done.returncode == 0, done.stderr
    same = flashtwin.run(LOAD, device="demo", timeline=flashtwin.Window(0.1, 0.02)).timeline
    assert same is not None
    assert out.read_bytes() == same.trace
    late = cli(*load, "--timeline", out, "--timeline-window", "100s+20ms")
    assert "the timeline is empty" in late.stderr
    for wrong in (("--timeline-window", "1s"), ("--timeline", out, "--timeline-window", "1")):
        refused = cli(*load, *wrong)
        assert refused.returncode == 2
        assert "--timeline-window 1" in refused.stderr


@pytest.mark.parametrize("case", ["msr", "modern", "array"])
def test_table_has_the_slices_and_instants_of_the_trace(case):
    timeline = run(case, WHOLE).timeline
    assert timeline is not None
    trace = read(timeline)
    rows = timeline.slices.to_pylist()
    slices = [row for row in rows if row["duration_ps"] is not None]
    assert rows[: len(slices)] == slices
    assert len(slices) == len(timeline)

    def of_trace(path: str) -> str:
        return re.sub(r"/line \d+$", "", path)

    shown = Counter((of_trace(e.path), e.name, e.begin, duration(e)) for e in trace.all())
    assert Counter((r["track"], r["name"], r["begin_ps"] // 1000, r["duration_ps"]) for r in slices) == shown
    instants = Counter((e.path, e.name, e.begin) for e in trace.instants)
    rest = rows[len(slices) :]
    assert Counter((r["track"], r["name"], r["begin_ps"] // 1000) for r in rest) == instants
    for row in rows:
        assert (row["die"] is not None) == ("/die " in row["track"])
        assert row["die"] is None or f"/die {row['die']}" in row["track"]
        assert (row["member"] is not None) == row["track"].startswith("member ")
        assert isinstance(json.loads(row["details"]), dict)
    by_request = {r["request"]: i for i, r in enumerate(rows) if r["track"] == "requests"}
    assert len(by_request) == 800
    assert sum(len(row["causes"]) for row in rows) == sum(len(e.ends) for e in trace.all())
