"""Clusters, windows, classes and policies as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenarios import DATA, trace_job

from runtime.simulator.cluster import parse_nodes
from runtime.simulator.errors import BadScenario, BadTrace
from runtime.simulator.instants import parse_duration, parse_window
from runtime.simulator.workload import arranged, shaped, with_classes, with_critical_share


def test_nodes_are_counted_and_named() -> None:
    nodes = parse_nodes("64x8")
    assert (len(nodes), {len(node.devices) for node in nodes}) == (64, {8})
    assert (nodes[0].node_id, nodes[63].node_id) == ("n01", "n64")


def test_nodes_may_be_of_several_kinds() -> None:
    kinds = [[device.kind for device in node.devices] for node in parse_nodes("1x2xH100, 2x1xA100")]
    assert kinds == [["H100", "H100"], ["A100"], ["A100"]]


def test_a_node_list_of_openb_is_read() -> None:
    nodes = parse_nodes(str(DATA / "openb_node_list_100.csv"))
    assert (len(nodes), nodes[0].node_id, len(nodes[0].devices)) == (100, "openb-node-0000", 2)
    assert nodes[0].devices[0].kind == "P100"


def test_a_node_list_of_hp_spot_is_read(tmp_path: Path) -> None:
    path = tmp_path / "node_info_df.csv"
    path.write_text("node_name,gpu_model,gpu_capacity_num,cpu_num\n0,A10,4,192\n1,A10,0,8\n")
    assert [(node.node_id, len(node.devices)) for node in parse_nodes(str(path))] == [("0", 4)]


@pytest.mark.parametrize("text", ["", "64", "0x8", "8x0", "64x8x", "axb", "-1x8", "64x8;2x8"])
def test_nodes_that_mean_nothing_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadScenario, match="64x8"):
        parse_nodes(text)


def test_more_devices_than_anybody_has_are_refused() -> None:
    with pytest.raises(BadScenario, match="1,000,000"):
        parse_nodes("1000000x8")


def test_a_table_that_is_no_node_list_is_refused() -> None:
    with pytest.raises(BadTrace, match="needs the columns sn, gpu, model"):
        parse_nodes(str(DATA / "philly_jobs_400.csv"))


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("14d", 1209600)])
def test_durations_have_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_a_window_has_its_first_moment_and_not_its_last() -> None:
    window = parse_window("2017-10-02..2017-10-16")
    assert window.from_s is not None
    assert window.to_s is not None
    assert window.to_s - window.from_s == 14 * 86400
    assert (window.has(window.from_s), window.has(window.to_s)) == (True, False)


def test_a_window_may_count_from_the_zero_of_the_trace_and_be_open() -> None:
    assert parse_window("..14d").has(0.0)
    assert not parse_window("1d..").has(86399.0)


@pytest.mark.parametrize("text", ["", "..", "2017", "b..c", "2017-10-16..2017-10-02", "2017-13-01..2018-01-01"])
def test_a_window_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadScenario):
        parse_window(text)


def test_the_critical_share_follows_the_seed() -> None:
    jobs = [trace_job(f"j{n}", n, 1) for n in range(2000)]
    first = [job.priority_class for job in with_critical_share(jobs, 0.1, 1)]
    assert first == [job.priority_class for job in with_critical_share(jobs, 0.1, 1)]
    assert first != [job.priority_class for job in with_critical_share(jobs, 0.1, 2)]
    assert 150 < first.count("critical") < 250


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(BadScenario, match="from 0 to 1"):
        with_critical_share([], share, 0)


def test_classes_of_the_trace_are_renamed_and_others_stay() -> None:
    jobs = [trace_job("a", 0, 1, priority="high"), trace_job("b", 0, 1, priority="low")]
    assert [job.priority_class for job in with_classes(jobs, {"high": "critical"})] == ["critical", "low"]


def test_jobs_of_one_moment_keep_the_order_of_the_file() -> None:
    assert [job.job_id for job in arranged([trace_job("b", 1, 1), trace_job("a", 1, 1), trace_job("c", 0, 1)])] == [
        "c",
        "b",
        "a",
    ]


@pytest.mark.parametrize(("n", "unit"), [(1, None), (3, 3), (8, 8), (12, None)])
def test_a_gang_is_on_one_node_where_it_fits_on_one(n: int, unit: int | None) -> None:
    assert shaped(trace_job("j", 0, 1, n=n), node_size=8).devices_per_node == unit
