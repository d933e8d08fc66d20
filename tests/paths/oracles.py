#!/usr/bin/env python3
"""Random graphs through the real program against scipy and networkx (Debian: python3-scipy, python3-networkx):
distances of whole, fractional and negative weights, routes, centralities, components. Skips, loudly, without them.

    oracles.py BUILD/lanewise"""
import os
import random
import subprocess
import sys
import tempfile

try:
    import networkx
    import numpy
    import scipy.sparse.csgraph
except ImportError as error:
    for other in ("/usr/bin/python3",):  # where a distribution puts them
        if os.path.exists(other) and os.path.realpath(other) != os.path.realpath(sys.executable) and "LW_TRIED" not in os.environ:
            os.execve(other, [other, *sys.argv], dict(os.environ, LW_TRIED="1"))
    print(f"SKIPPED: {error}")
    sys.exit(0)

PROGRAM = os.path.abspath(sys.argv[1])
failures = 0


def expect(good, what):
    global failures
    if not good:
        failures += 1
        print("FAILED", what)


def run(*arguments):
    result = subprocess.run([PROGRAM, "apsp", *arguments], capture_output=True, text=True)
    expect(result.returncode == 0, f"{arguments}: {result.stderr}")
    return result.stdout


def make(n, degree, kind, undirected):
    """{(u, v): weight}; negative weights come from potentials, so that no cycle is negative."""
    edges, potential = {}, [random.randrange(50) for _ in range(n)]
    for _ in range(int(n * degree)):
        u, v = random.randrange(n), random.randrange(n)
        if u == v or (undirected and (v, u) in edges):
            continue
        w = random.randrange(0 if kind == "zeros" else 1, 3 if kind == "zeros" else 100)
        if kind == "negative":
            w += potential[u] - potential[v]
        if kind == "fractions":
            w = w / 7 + 1e-10  # scipy drops dense weights under 1e-8; these must stay
        edges[u, v] = w
    return edges


def read_table(text):
    lines = [line for line in text.splitlines() if not line.startswith("##")]
    return [line.split("\t") for line in lines[1:]]


def check(folder, n, degree, kind, undirected):
    what = f"n={n} degree={degree} {kind} {'undirected' if undirected else 'directed'}"
    edges = make(n, degree, kind, undirected)
    path = os.path.join(folder, "g.mtx")
    with open(path, "w") as out:
        print("%%MatrixMarket matrix coordinate real general", file=out)
        print(n, n, len(edges), file=out)
        for (u, v), w in edges.items():
            print(u + 1, v + 1, repr(w), file=out)
    options = ["--undirected"] if undirected else []
    got_path = os.path.join(folder, "d.npy")
    run(path, "-o", got_path, "--next", "--dtype", "float64", *options)
    got, hops = numpy.load(got_path), numpy.load(os.path.join(folder, "d.next.npy"))

    graph = (networkx.Graph if undirected else networkx.DiGraph)()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in edges.items())
    dense = numpy.full((n, n), numpy.inf)
    for u, v, w in graph.edges(data="weight"):
        dense[u, v] = w
        if undirected:
            dense[v, u] = w
    # as a masked matrix, in which zero is an edge
    matrix = scipy.sparse.csgraph.csgraph_from_dense(dense, null_value=numpy.inf)
    want = scipy.sparse.csgraph.johnson(matrix) if kind != "zeros" else numpy.asarray(networkx.floyd_warshall_numpy(graph))
    near = numpy.allclose(numpy.where(numpy.isinf(want), -1, want), numpy.where(numpy.isinf(got), -1, got), rtol=1e-12, atol=1e-9)
    expect(got.shape == want.shape and near, what + ": distances")
    finite = numpy.isfinite(got)
    if n <= 60:  # triangle inequality
        expect(all((got <= got[:, [k]] + got[[k], :] + 1e-9).all() for k in range(n)), what + ": triangle inequality")
    # distances between two sets of vertices
    first, second = ([v for v in range(n) if v % 3 == r] for r in (0, 1))
    if second:
        sets = os.path.join(folder, "sets.txt")
        with open(sets, "w") as out:
            print("".join(f"{name} {v + 1}\n" for name, members in (("S", first), ("T", second)) for v in members), file=out)
        rows = {(r[0], r[1]): r for r in read_table(run(path, "--sets", sets, "--dtype", "float64", *options))}
        for pair, s, t in ((("S", "T"), first, second), (("T", "S"), second, first)):
            part = got[numpy.ix_(s, t)]
            least, reached = part.min(axis=0), numpy.isfinite(part)
            for column, value in ((4, least[numpy.isfinite(least)]), (5, part[reached])):
                mean, told = value.mean() if value.size else numpy.inf, float(rows[pair][column])
                expect(told == mean or abs(told - mean) < 1e-6 * abs(mean) + 1e-9, what + ": sets")
            expect(int(rows[pair][7]) == reached.sum(), what + ": pairs reached between sets")
    # every route walks edges, sums up and has the fewest hops of its length
    weights = {(u, v): w for u, v, w in graph.edges(data="weight")}
    if undirected:
        weights.update({(v, u): w for (u, v), w in weights.items()})
    good = (hops[~finite] == -1).all()
    for i in range(n):
        for j in range(n):
            v, total, steps = i, 0.0, 0
            while finite[i, j] and v != j and steps <= n:
                step = (v, int(hops[v, j]))
                if step not in weights:
                    steps = n + 1
                    break
                total, v, steps = total + weights[step], step[1], steps + 1
            good = good and steps <= n and (not finite[i, j] or abs(total - got[i, j]) < 1e-7)
    expect(good, what + ": routes")
    # fewest hops: distances of w * (n + 1) + 1 for whole weights tell both
    if kind != "fractions":
        pairs = networkx.DiGraph()
        pairs.add_nodes_from(range(n))
        pairs.add_weighted_edges_from((u, v, int(w) * (n + 1) + 1) for (u, v), w in weights.items())
        both = numpy.asarray(networkx.floyd_warshall_numpy(pairs))
        for i in range(n):
            for j in range(n):
                if i == j or not finite[i, j]:
                    continue
                firsts = [v for v in pairs[i] if pairs[i][v]["weight"] + both[v, j] == both[i, j]]
                if min(firsts) != hops[i, j]:
                    expect(False, f"{what}: hop {i} -> {j} is {hops[i, j]}, not {min(firsts)}")
                    return
    # components by themselves give the same
    run(path, "-o", os.path.join(folder, "c.npy"), "--dtype", "float64", "--components", *options)
    expect(numpy.array_equal(numpy.load(os.path.join(folder, "c.npy")), got) or kind == "fractions", what + ": components")
    if kind in ("negative", "zeros"):
        return
    # centralities: networkx counts distances that lead inwards
    table = read_table(run(path, "--stats", *options, "--dtype", "float64"))
    closeness = networkx.closeness_centrality(graph if undirected else graph.reverse(), distance="weight")
    for row in table:
        v = int(row[0]) - 1
        others = [got[v, j] for j in range(n) if j != v and finite[v, j]]
        expect(int(row[1]) == len(others), what + ": reached")
        expect(abs(float(row[2]) - max(others, default=0)) < 1e-9, what + ": eccentricity")
        expect(abs(float(row[4]) - closeness[v]) < 1e-9, what + ": closeness")


def main():
    random.seed(7)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("whole", "zeros", "negative", "fractions"):
            for n, degree in ((1, 1), (2, 1), (7, 2), (23, 1), (60, 3), (97, 6), (193, 2)):
                for undirected in (False, True):
                    if not (undirected and kind == "negative"):
                        check(folder, n, degree, kind, undirected)
    print(f"scipy {scipy.__version__}, networkx {networkx.__version__}: {failures} failures")
    return failures > 0


sys.exit(main())
