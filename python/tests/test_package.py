import inspect
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pytest

import nandscope

PROGRAM = os.environ.get("NANDSCOPE")
CARD = """
import sys
AU, OPEN, now = 4 << 20, [], 0
print("nandscope-device 1 size=268435456 sector=512", flush=True)
for line in sys.stdin:
    what, *n = line.split()
    took = 200000
    if what == "q": break
    if what == "i": took = int(n[0])
    if what in "rw": took += int(n[1]) * 80
    if what == "r": took += 300000 * ((int(n[0]) + int(n[1]) - 1) // AU - int(n[0]) // AU)
    print(now, took, flush=True)
    now += took
"""


@pytest.fixture(scope="module")
def report():
    return nandscope.probe("sim:toshiba-emmc", time="20m")


def test_a_probe_finds_what_is_true(report):
    truth = nandscope.Card("toshiba-emmc").truth()
    assert report.finding("erase_block").value == truth["erase_block"]
    assert report.finding("erase_block").confidence > 0.9 and report.finding("erase_block").shown == "4 MiB"
    assert {f.quantity for f in report.findings} >= {"erase_block", "write_unit", "capacity"}
    assert report.target == "sim:toshiba-emmc?seed=1" and report.cost["writes"] > 0


def test_the_program_finds_the_same(report, tmp_path):
    if not PROGRAM:
        pytest.skip("NANDSCOPE names no program")
    subprocess.run([PROGRAM, "probe", "sim:toshiba-emmc", "-q", "--json", "r.json"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    theirs = nandscope.Report.load(tmp_path / "r.json")
    ours = {f.quantity: (f.value, f.confidence) for f in report.findings}
    assert {f.quantity: (f.value, f.confidence) for f in theirs.findings} == ours
    assert all((theirs.samples()[k] == v).all() for k, v in report.samples().items())
    # And the other way.
    report.save(tmp_path / "p.json")
    out = subprocess.run([PROGRAM, "report", "p.json", "--format", "csv"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "erase_block" in out and "4194304" in out


def test_reports_go_through_json(report):
    again = nandscope.Report.from_json(report.to_json())
    assert json.loads(again.to_json()) == json.loads(report.to_json())
    assert [f.value for f in again.inferred().findings] == [f.value for f in report.findings]


def test_samples_are_arrays_on_the_memory_they_came_in(report):
    s = report.samples()
    assert len({len(v) for v in s.values()}) == 1 and len(s["took"]) > 1000
    assert s["took"].dtype == numpy.uint64 and s["took"].flags["C_CONTIGUOUS"]
    # An array that was moved out of Rust has an owner other than NumPy.
    assert not s["took"].flags["OWNDATA"] and s["took"].base is not None
    assert s["run"].max() < len(report.experiments) and (numpy.diff(s["run"].astype(int)) >= 0).all()
    compute = pytest.importorskip("pyarrow.compute")
    table = nandscope.arrow(s)
    assert table.num_rows == len(s["took"])
    address = table["took"].chunk(0).buffers()[1].address
    assert address == s["took"].__array_interface__["data"][0], "the table is a copy"
    assert compute.max(table["took"]).as_py() == s["took"].max()


def test_one_request_and_a_whole_trace_are_the_same():
    one, many = nandscope.Card("toshiba-emmc"), nandscope.Card("toshiba-emmc")
    at = numpy.arange(200, dtype=numpy.uint64) * numpy.uint64(1 << 20)
    op = (numpy.arange(200) % 3 > 0).astype(numpy.uint8)
    trace = nandscope.Trace(op, at, numpy.full(200, 4096, numpy.uint64))
    took = many.run(trace)
    for i in range(200):
        start, t = one.submit(["read", "write"][op[i]], int(at[i]), 4096)
        assert t == took[i], i
    assert one.now == many.now == took.sum()
    assert many.counters()["bytes_written"] == 4096 * int(op.sum())
    for ops, lens in ((op, 4096), (op, numpy.full(200, 4096, "u8"))):
        card = nandscope.Card("toshiba-emmc")
        starts, each = card.submit(ops, at, lens)
        assert (each == took).all() and starts[0] == 0 and (starts[1:] == took.cumsum()[:-1]).all() and card.now == many.now
    card = nandscope.Card("toshiba-emmc")
    assert (card.submit("read", at, 512)[1] > 0).all() and card.counters()["bytes_read"] == 200 * 512
    columns = trace.columns()
    assert (columns["at"] == at).all() and (columns["op"] == op).all() and len(trace) == 200


def test_traces_are_read(tmp_path):
    (tmp_path / "t.txt").write_text("0 0 0 8 1\n1000 0 16 8 0\n")
    trace = nandscope.Trace.read(tmp_path / "t.txt")
    assert trace.format == "mqsim" and trace.columns()["op"].tolist() == [0, 1] and trace.malformed == 0


def test_a_twin_behaves_like_its_card(report):
    twin = nandscope.Twin.fit([report], seconds=2)
    assert twin.no_card is None and "erase_block" in twin.model
    assert any(s["name"] == "erase block" and s["value"] == "4 MiB" for s in twin.result()["structure"])
    trace = nandscope.Trace.made("random-read-4k", 1000, 1 << 30)
    a, b = nandscope.Card("toshiba-emmc").run(trace), twin.card().run(trace)
    assert abs(float(numpy.median(a)) / float(numpy.median(b)) - 1) < 0.2


def test_a_program_is_a_card(tmp_path):
    (tmp_path / "card.py").write_text(CARD)
    report = nandscope.probe(f"exec:{sys.executable} {tmp_path}/card.py", write=False, experiments=["read-boundary"], time="30s")
    assert report.experiments == ["read-boundary"] and (report.samples()["op"] == 0).all()
    assert report.finding("erase_block").value == 4 << 20


def test_logs_of_other_tools(tmp_path):
    log = "align 4194304\tpre 1.14ms\ton 1.33ms\tpost 1.14ms\tdiff 190us\nalign 2097152\tpre 1.14ms\ton 1.15ms\tpost 1.14ms\tdiff 10us\nalign 1048576\tpre 1.14ms\ton 1.14ms\tpost 1.14ms\tdiff 1us\n"
    (tmp_path / "log.txt").write_text(log)
    [card] = nandscope.infer([tmp_path / "log.txt"])
    assert card.tests and any(f.quantity == "erase_block" for f in card.findings)


def test_what_is_wrong_is_an_exception(report, tmp_path):
    for wrong in [
        lambda: nandscope.Card("nosuch"),
        lambda: nandscope.probe("sim:toshiba-emmc", time="soon"),
        lambda: nandscope.probe("sim:toshiba-emmc", experiments=["nosuch"]),
        lambda: nandscope.Card("toshiba-emmc").submit("dance", 0, 512),
        lambda: nandscope.Card("toshiba-emmc").submit("dance", numpy.zeros(2, "u8"), 512),
        lambda: nandscope.Card("toshiba-emmc").submit(numpy.array([0, 9], "u1"), numpy.zeros(2, "u8"), 512),
        lambda: nandscope.Card("toshiba-emmc").submit("read", numpy.zeros(2, "u8"), numpy.zeros(3, "u8")),
        lambda: report.finding("nosuch"),
        lambda: nandscope.Report.from_json("{}"),
        lambda: nandscope.Trace(*[numpy.zeros(n, d) for n, d in ((2, "u1"), (1, "u8"), (2, "u8"))]),
        lambda: nandscope.Trace(numpy.array([9], "u1"), numpy.zeros(1, "u8"), numpy.zeros(1, "u8")),
    ]:
        with pytest.raises(ValueError):
            wrong()
    (tmp_path / "image").write_bytes(bytes(2 << 20))
    before = (tmp_path / "image").read_bytes()
    for wrong in [
        lambda: nandscope.Report.load(tmp_path / "none"),
        lambda: nandscope.Card("toshiba-emmc").submit("read", 0, 100),
        lambda: nandscope.Card("toshiba-emmc").submit("read", numpy.array([0, 2**63], "u8"), 512),
        lambda: nandscope.probe(str(tmp_path / "image")),
    ]:
        with pytest.raises(OSError):
            wrong()
    assert (tmp_path / "image").read_bytes() == before


def test_the_lock_is_released():
    card = nandscope.Card("modern-a1-32gb")
    trace = nandscope.Trace.made("random-4k", 300_000, card.capacity)
    done = []
    thread = threading.Thread(target=lambda: done.append(card.run(trace)))
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    # With the lock held this thread would get one turn or two.
    assert len(done[0]) == 300_000 and turns > 5


def one_card(seed):
    """The report of a random card, without what the clock says."""
    report = json.loads(nandscope.probe(f"sim:random?seed={seed}", time="5s", writes="16MiB").to_json())
    return report["findings"]


def test_processes_of_dask_say_what_one_process_says():
    distributed = pytest.importorskip("dask.distributed")
    seeds = range(11, 17)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            # Functions of a test module are sent by value.
            import cloudpickle

            cloudpickle.register_pickle_by_value(sys.modules[__name__])
            found = client.gather(client.map(one_card, seeds))
            workers = len(client.scheduler_info()["workers"])
    assert workers == 2 and len(found) == 6 and all(found)
    assert found == [one_card(seed) for seed in seeds]


def test_everything_is_described():
    stub = (Path(nandscope.__file__).parent / "__init__.pyi").read_text()
    for name in nandscope.__all__:
        thing = getattr(nandscope, name)
        if name.startswith("__"):
            continue
        assert thing.__doc__, name
        assert f"class {name}:" in stub or f"def {name}(" in stub, name
        for part in [p for p in vars(thing) if not p.startswith("_")] if inspect.isclass(thing) else []:
            assert getattr(thing, part).__doc__, f"{name}.{part}"
            assert f"def {part}(" in stub, f"{name}.{part}"


def test_the_notebook_runs():
    book = json.loads((Path(__file__).parent.parent / "examples" / "first.ipynb").read_text())
    names = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["block"].value == 4 << 20 and len(names["slowest"]) == 5


def test_a_million_requests_cost_what_they_cost_the_program(tmp_path):
    """User time of both on the same requests: the program's may be beaten by at most a tenth."""
    if not PROGRAM:
        pytest.skip("NANDSCOPE names no program")
    if os.environ.get("NANDSCOPE_RATIO") != "1":
        pytest.skip("times of one machine: NANDSCOPE_RATIO=1 measures them")
    import random
    import resource

    def program():
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        words = [PROGRAM, "sim", "sim:modern-a1-32gb", "--pattern", "random-4k", "--requests", "1000000", "-q"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    def package():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        card = nandscope.Card("modern-a1-32gb")
        card.run(nandscope.Trace.made("random-4k", 1_000_000, card.capacity))
        return resource.getrusage(resource.RUSAGE_SELF).ru_utime - before

    card = nandscope.Card("modern-a1-32gb")
    chance, places = random.Random(1), card.capacity // 4096
    at = [4096 * chance.randrange(places) for _ in range(1_000_000)]
    column = numpy.array(at, "u8")

    def columns():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        nandscope.Card("modern-a1-32gb").submit("write", column, 4096)
        return resource.getrusage(resource.RUSAGE_SELF).ru_utime - before

    def one_by_one():
        card = nandscope.Card("modern-a1-32gb")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        for a in at:
            card.submit("write", a, 4096)
        return resource.getrusage(resource.RUSAGE_SELF).ru_utime - before

    calls = sorted(one_by_one() / program() for _ in range(9))
    print(f"a call a request over program: median {calls[4]:.2f}, {calls[0]:.2f} to {calls[-1]:.2f}")
    pairs = [(columns(), program()) for _ in range(9)]
    arrays = sorted(p / q for p, q in pairs)
    print(f"columns submitted over program: median {arrays[4]:.3f}, {arrays[0]:.3f} to {arrays[-1]:.3f}")
    pairs = [(package(), program()) for _ in range(9)]
    ratio = sorted(p / q for p, q in pairs)
    print(f"package over program, user time of 1 M requests: median {ratio[4]:.3f}, {ratio[0]:.3f} to {ratio[-1]:.3f}")
    assert ratio[4] < 1.1 and arrays[4] < 1.1
