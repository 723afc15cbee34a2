"""The verbs of `labkit`, one function each. What they do is in `labkit.lab`; here are options and printing only."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from labkit import __version__
from labkit.cli.crashtest import crashtest
from labkit.cli.grade import grade
from labkit.cli.release import release
from labkit.cli.timeouts import timeouts
from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.spark.options import PARTITIONS

app = typer.Typer(
    name="labkit",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
    help="Step, crash and judge stream processing: what does exactly-once really guarantee?",
)

GUARANTEES = ["exactly-once", "at-least-once", "at-most-once", "none"]

Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object on standard output and nothing else."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="The folder to write to; it must not be there yet."),
]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.")
    ] = False,
) -> None:
    """Step, crash and judge stream processing: what does exactly-once really guarantee?

    Start with `labkit demo`. Every command takes --debug, which shows the traceback of an error.
    """
    if version:
        print(f"labkit {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@app.command(short_help="Say what this machine has and lacks.")
def doctor(
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="First make the class-data archive for faster starts, if there is none.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Say what this machine has and lacks; exit 69 when something that the lab needs is missing."""
    from labkit.host.doctor import examine, exit_code

    if prepare:
        from labkit.spark.fast.archive import make_archive

        make_archive()
    findings = examine()
    if as_json:
        print(
            json.dumps(
                [
                    finding._asdict()
                    if hasattr(finding, "_asdict")
                    else _plain(finding)
                    for finding in findings
                ]
            )
        )
        return exit_code(findings)
    for finding in findings:
        mark = (
            "ok     " if finding.ok else ("MISSING" if finding.required else "absent ")
        )
        print(
            f"{mark} {finding.name}: {finding.detail}"
            + (f"; {finding.remedy}" if not finding.ok else "")
        )
    return exit_code(findings)


def _plain(finding: Any) -> dict[str, Any]:
    names = ("name", "ok", "required", "detail", "remedy")
    return {name: getattr(finding, name) for name in names}


@app.command(short_help="Start, look at or stop the servers that some stores need.")
def services(
    verb: Annotated[str, typer.Argument(help="up, status or down.")],
    name: Annotated[
        str | None, typer.Argument(help="postgres or kafka; default: all of them.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Start (up), look at (status) or stop (down) the servers of the lab, each in the user's cache folder.

    Where LABKIT_POSTGRES or LABKIT_KAFKA names a server of your own, that one is used and nothing is started or
    deleted. Exit 69 when one does not answer after up, or at status.
    """
    from labkit.cli.services import run_services

    return run_services(verb, name, as_json)


app.command(short_help="Grade submitted notebooks, each in a sandbox.")(grade)
app.command(short_help="Make the copy of the lab that learners get.")(release)
app.command(
    short_help="Kill a real job at every effect of your own sink, and say what the sink guarantees."
)(crashtest)


app.command(
    short_help="Say whether three timeouts of Kafka transactions can lose data."
)(timeouts)


@app.command(short_help="List the failpoints, and which sink passes which.")
def points(as_json: Json = False) -> int:
    """List every failpoint with what has happened there, and the sinks that pass it."""
    from labkit.core.failpoints import POINTS, FailPoint, Order

    passed: dict[FailPoint, list[str]] = {point: [] for point in FailPoint}
    for (strategy, order), names in POINTS.items():
        for point in names:
            passed[point].append(
                strategy.value if order is Order.NONE else f"{strategy} ({order})"
            )
    if as_json:
        print(
            json.dumps(
                {
                    point.value: {"sentence": point.sentence, "sinks": passed[point]}
                    for point in FailPoint
                }
            )
        )
        return 0
    for point in FailPoint:
        print(
            f"{point}\n  {point.sentence}\n  {', '.join(passed[point]) or 'every sink, in a restarted driver'}"
        )
    return 0


@app.command(
    short_help="Run the word count on real Spark, kill it, restart it, judge it."
)
def run(
    context: typer.Context,
    sink: Annotated[
        str, typer.Option(help="append, idempotent, batch_marker, wal or two_phase.")
    ] = "append",
    store: Annotated[
        str,
        typer.Option(
            help="files, sqlite, or a server (labkit services): postgres, kafka."
        ),
    ] = "files",
    order: Annotated[
        str | None,
        typer.Option(
            help="engine (Spark's own) or decision (Flink's); only wal and two_phase take one."
        ),
    ] = None,
    crash: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POINT[@BATCH]",
            help="Where to kill (see labkit points); given again, the nth is for the nth driver.",
        ),
    ] = None,
    input: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help='For running: JSON Lines, one {"word": ...} a line; default: hello, world, hello. For totals: any '
            "UTF-8 text; default: a poem.",
        ),
    ] = None,
    records_per_batch: Annotated[
        int, typer.Option(help="Records (lines) in one micro-batch.")
    ] = 1_000,
    job: Annotated[
        str,
        typer.Option(
            help="running: one row (offset, word, running count) for every record. totals: for every batch the total "
            "of each word in it; a word is a maximal run of letters, numbers and ' ([\\p{L}\\p{N}']+), lower-cased. "
            "socket: one row for every line of a socket, which cannot be replayed; --records-per-batch lines are sent "
            "to every driver that will be killed, the rest to the last. kafka: the same as running, on a topic of the "
            "run's own that Spark's Kafka source reads at read_committed."
        ),
    ] = "running",
    state: Annotated[
        str | None,
        typer.Option(
            help="Where Spark keeps the counts: hdfs or rocksdb; running needs rocksdb."
        ),
    ] = None,
    delete_checkpoint: Annotated[
        bool,
        typer.Option(
            "--delete-checkpoint", help="Put the checkpoint aside after every crash."
        ),
    ] = False,
    query: Annotated[
        str | None,
        typer.Option(
            help="The query's name in markers and handles; default: new with every checkpoint."
        ),
    ] = None,
    later_records_per_batch: Annotated[
        int | None,
        typer.Option(
            help="Records in one micro-batch after the first crash; default: the same."
        ),
    ] = None,
    partitions: Annotated[
        int, typer.Option(help="Tasks that write each batch of running and kafka.")
    ] = PARTITIONS,
    later_partitions: Annotated[
        int | None,
        typer.Option(
            help="Such tasks after the first crash; default: the same. The state keeps its partitions."
        ),
    ] = None,
    between: Annotated[
        str,
        typer.Option(
            help="What happens after every crash: nothing; to the store's server: kill-server, restart-server, expire; "
            "to the input of --job kafka: add-partition, falsify-group."
        ),
    ] = "nothing",
    master: Annotated[
        str | None,
        typer.Option(
            help="spark://HOST:PORT or local-cluster[EXECUTORS,CORES,MEGABYTES]: executors are processes of their own; "
            "default: threads of the driver."
        ),
    ] = None,
    victim: Annotated[
        str,
        typer.Option(
            help="Who is killed: driver, or on a cluster the executor whose task reached the point."
        ),
    ] = "driver",
    commit_group: Annotated[
        bool,
        typer.Option(
            "--commit-group",
            help="With --job kafka: also commit offsets to a consumer group, for monitors.",
        ),
    ] = False,
    expect: Annotated[
        str | None,
        typer.Option(metavar="GUARANTEE", help="Exit 1 if a weaker guarantee held."),
    ] = None,
    out: Out = None,
    resume: Annotated[
        Path | None, typer.Option(help="Finish a run that was stopped, in its folder.")
    ] = None,
    standby: Annotated[
        bool,
        typer.Option(
            "--standby",
            help="A warm driver waits for each crash; needs memory for both (labkit doctor).",
        ),
    ] = False,
    keep_store: Annotated[
        bool,
        typer.Option(
            "--keep-store", help="Leave the rows in the server when the run is judged."
        ),
    ] = False,
    patience: Annotated[
        float,
        typer.Option(help="Seconds without news after which the run is given up."),
    ] = 240.0,
    as_json: Json = False,
) -> int:
    """Run the word count on real Spark, kill it where you say, restart it, and judge what an outside reader saw."""
    from labkit.cli.progress import progress
    from labkit.runs import outcome
    from labkit.runs.runner import Setup
    from labkit.runs.scenario import plan

    _check_guarantee(expect)
    if patience <= 0:
        raise InvalidInput(f"--patience {patience:g}: must be more than 0 seconds.")
    if resume is not None:
        _refuse_with_resume(context)
        started = outcome.resumed(resume)
    else:
        scenario = plan(
            input=input,
            sink=sink,
            store=store,
            order=order,
            crashes=crash or [],
            records_per_batch=records_per_batch,
            job=job,
            state=state,
            delete_checkpoint=delete_checkpoint,
            query=query,
            later_records_per_batch=later_records_per_batch,
            partitions=partitions,
            later_partitions=later_partitions,
            between=between,
            master=master,
            victim=victim,
            commit_group=commit_group,
        )
        started = outcome.prepare_checked(scenario, out)
    started.keep_store = keep_store
    with progress(
        as_json, len(started.scenario.crashes) + 1 - len(started.crashes)
    ) as tell:
        finished = outcome.finish(started, tell, patience, Setup(standby=standby))
    if as_json:
        print(json.dumps(finished.to_json()))
    else:
        print(finished)
    return _verdict_code(finished, expect)


_LATER = (
    *("state", "delete_checkpoint", "query", "later_records_per_batch", "between"),
    *("partitions", "later_partitions"),
    *("master", "victim", "commit_group"),
)


def _refuse_with_resume(context: typer.Context) -> None:
    """The folder knows its scenario; an option that names another one must not be passed over."""
    for name in (
        "sink",
        "store",
        "order",
        "crash",
        "input",
        "records_per_batch",
        "job",
        "out",
        *_LATER,
    ):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = f"--{name.replace('_', '-')}"
            raise InvalidInput(
                f"{option} with --resume: the folder says what to run; leave {option} out."
            )


def _check_guarantee(expect: str | None) -> None:
    if expect is not None and expect not in GUARANTEES:
        raise InvalidInput(
            f"--expect {expect}: unknown guarantee; {nearest(expect, GUARANTEES)}"
        )


def _verdict_code(outcome: Any, expect: str | None) -> int:
    from labkit.core.judge import Guarantee, satisfies

    held = outcome.verdict.guarantee
    if held is Guarantee.UNKNOWN:
        return 2
    return 0 if expect is None or satisfies(held, Guarantee(expect)) else 1


@app.command(short_help="Crash three records with every sink, then show the limits.")
def demo(out: Out = None, as_json: Json = False) -> int:
    """Crash hello, world, hello between pre-commit and commit with every sink, then show the honest limits."""
    from labkit.cli.demo import run_demo

    return run_demo(out, as_json)


@app.command(short_help="Compare every sink at every failpoint with the predictions.")
def matrix(
    engine: Annotated[
        str,
        typer.Option(
            help="sim: the simulator; spark: the real engine; both: all three voices must agree."
        ),
    ] = "both",
    expected: Annotated[
        bool,
        typer.Option(
            "--expected", help="Only show what each cell should give, and why."
        ),
    ] = False,
    store: Annotated[
        list[str] | None, typer.Option(help="Only these stores; may be repeated.")
    ] = None,
    sink: Annotated[
        list[str] | None, typer.Option(help="Only these sinks; may be repeated.")
    ] = None,
    point: Annotated[
        list[str] | None, typer.Option(help="Only these failpoints; may be repeated.")
    ] = None,
    repeat: Annotated[int, typer.Option(help="How often each cell runs.")] = 1,
    out: Out = None,
    as_json: Json = False,
) -> int:
    """Run every sink at every failpoint, simulated and on real Spark, and compare with what was predicted.

    Exit 1 where the voices differ.
    """
    from labkit.cli.matrix import run_matrix, select, show_expected, simulate_matrix

    cells = select(engine, store, sink, point)
    if expected:
        return show_expected(cells, as_json)
    if engine == "sim":
        return simulate_matrix(cells, as_json)
    return run_matrix(cells, repeat, out, as_json, both=engine == "both")


@app.command()
def explore(
    model: Annotated[
        str | None,
        typer.Argument(
            help="delivery, snapshot, two_phase_commit, pipeline, changelog or kafka_log."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter; may be repeated."
        ),
    ] = None,
    max_states: Annotated[
        int, typer.Option(help="Stop after so many states.")
    ] = 1_000_000,
    seconds: Annotated[float, typer.Option(help="Stop after so many seconds.")] = 300.0,
    megabytes: Annotated[
        int, typer.Option(help="Stop when this process uses so much memory.")
    ] = 4_000,
    walks: Annotated[int, typer.Option(help="Instead, take so many random walks.")] = 0,
    steps: Annotated[int, typer.Option(help="Steps of the longest walk.")] = 500,
    seed: Annotated[
        int, typer.Option(help="Of the walks: the same seed, the same walks.")
    ] = 1,
    as_json: Json = False,
) -> int:
    """Visit every schedule of a simulator and say which claims do not hold, each with a shortest way to see it.

    Exit 0 all claims hold, 1 one does not, 2 nothing is wrong but not everything was seen.
    """
    from labkit.cli.explore import parse_settings, run_explore, run_walks

    given = parse_settings(settings or [])
    if walks:
        return run_walks(
            model, given, walks=walks, steps=steps, seed=seed, as_json=as_json
        )
    return run_explore(
        model,
        given,
        max_states=max_states,
        seconds=seconds,
        megabytes=megabytes,
        as_json=as_json,
    )


@app.command()
def replay(
    trace: Annotated[
        str | None,
        typer.Argument(
            help="A trace, a file with one, or a scenario's name; none: list the scenarios."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Step through one run of a simulator, a line a step. Exit 1 if a claim is violated on the way."""
    from labkit.cli.explore import run_replay

    return run_replay(trace, as_json)


@app.command(
    hidden=True,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def bench() -> int:
    """Say where the measurements are: they are no part of the package."""
    raise InvalidInput(
        'measurements are `make bench` in a checkout, for example: make bench ONLY="crash explore" ROUNDS=3.'
    )


@app.command("lab", short_help="Open JupyterLab on the notebooks.")
def open_lab(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="The folder with the notebooks; default: notebooks, or this folder."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Default: 8888, or the next free one.")
    ] = None,
    browser: Annotated[
        bool,
        typer.Option(help="Whether to open a browser; the address is printed anyway."),
    ] = True,
) -> int:
    """Open JupyterLab on the first notebook: one kernel, no news, no request to any other host."""
    from labkit.cli.jupyter import run_lab

    return run_lab(folder, port, browser=browser)
