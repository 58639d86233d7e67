"""The command `pullback`: run a script, launch ranks of it, explain its graphs, see a demonstration, time it, look at the machine.

In: the words of a command line. Out: an exit status. Each subcommand is a module here that is imported only when it is
asked for, so that `pullback run` costs a script no more than its own imports.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

__all__ = ["main"]


def _run(args: argparse.Namespace) -> int:
    from .run import run
    from .tracebacks import print_program_errors

    print_program_errors()
    return run(args.target, args.arguments, as_module=args.module, compile=args.compile)


def _launch(args: argparse.Namespace) -> int:
    from .launch import launch_script

    return launch_script(
        args.target, args.arguments, args.ranks, hostfile=args.hostfile, as_module=args.module, restarts=args.restarts
    )


def _explain(args: argparse.Namespace) -> int:
    from .explain import explain

    return explain(args.target, args.arguments, args.html)


def _profile(args: argparse.Namespace) -> int:
    from .profile import profile

    return profile(args.target, args.arguments, args.html, args.trace, args.compile)


def _bench(args: argparse.Namespace) -> int:
    from .bench import bench

    return bench(args.only, args.threads, args.rounds, args.seconds, args.picture, args.json)


def _demo(args: argparse.Namespace) -> int:
    from pullback import set_num_threads

    from .demo import demo

    set_num_threads(1)  # its matrices are so small that threads would only wait for one another
    picture = args.picture or (None if args.plain else "demo-loss.svg")
    return demo(
        steps=args.steps, plain=args.plain, seed=args.seed, picture=picture, compiled=not args.eager, html=args.html
    )


def _doctor(args: argparse.Namespace) -> int:
    from .doctor import doctor

    return doctor()


def _alias(args: argparse.Namespace) -> int:
    from .alias import alias

    return alias(remove=args.remove, status=args.status)


def _scan(args: argparse.Namespace) -> int:
    from .scan import scan

    return scan(args.target, everything=args.all)


def _count(word: str) -> int:
    """A whole number above zero."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above zero, got {word!r}")
    return int(word)


class _Version(argparse.Action):
    """Read when asked for: loading the package takes a moment."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from ..core.release import version_of

        print(f"pullback {version_of('pullback')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pullback", description="An autograd engine and training compiler in Python.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a script in which `import torch` means pullback")
    run.add_argument("--compile", action="store_true", help="run the script's functions under capture")
    run.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    run.add_argument("target", metavar="SCRIPT")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    run.set_defaults(action=_run)

    launch = commands.add_parser("launch", help="run a script as several ranks, joined by MPI")
    launch.add_argument("-n", dest="ranks", type=_count, default=1, metavar="RANKS", help="how many (default 1)")
    launch.add_argument("--hostfile", metavar="FILE", help="the machines, as mpiexec reads them (default: this one)")
    launch.add_argument("--restarts", type=int, default=0, metavar="N", help="how often to start again after a failure")
    launch.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    launch.add_argument("target", metavar="SCRIPT")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    launch.set_defaults(action=_launch)

    explain = commands.add_parser("explain", help="run a script under capture and say where its graphs end, and why")
    explain.add_argument("--html", metavar="FILE", help="write the whole account, native code included, as a page")
    explain.add_argument("target", metavar="SCRIPT")
    explain.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    explain.set_defaults(action=_explain)

    profile = commands.add_parser("profile", help="run a script and say where its time goes")
    profile.add_argument("--html", metavar="FILE", help="write a flame graph as a page")
    profile.add_argument("--trace", metavar="FILE", help="write every operator as a trace for Chrome or Perfetto")
    profile.add_argument("--compile", action="store_true", help="run the script's functions compiled")
    profile.add_argument("target", metavar="SCRIPT")
    profile.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    profile.set_defaults(action=_profile)

    bench = commands.add_parser("bench", help="time training steps here, beside PyTorch and JAX if they are installed")
    bench.add_argument("--only", default="", metavar="WORD", help="cases whose name contains it")
    bench.add_argument("--threads", type=_count, default=1, help="of each library (default %(default)s)")
    bench.add_argument("--rounds", type=_count, default=3, help="of each case; the best counts (default %(default)s)")
    bench.add_argument("--seconds", type=float, default=0.3, help="of a round (default %(default)s)")
    bench.add_argument("--picture", metavar="FILE", help="write the ratios as an SVG file")
    bench.add_argument("--json", metavar="FILE", help="write the figures")
    bench.set_defaults(action=_bench)

    demo = commands.add_parser("demo", help="train a small language model and read what it writes")
    demo.add_argument("--steps", type=_count, default=600, help="steps of gradient descent (default %(default)s)")
    demo.add_argument("--seed", type=int, default=0, help="of the weights, the batches and the sample (default 0)")
    demo.add_argument("--picture", metavar="FILE", help="of the loss curve (default demo-loss.svg; none if plain)")
    demo.add_argument("--plain", action="store_true", help="lines for a log: no progress bar, no colour")
    demo.add_argument("--eager", action="store_true", help="do not compile the step")
    demo.add_argument(
        "--html", nargs="?", const="demo-report.html", metavar="FILE",
        help="write what the compiler made of the step as a page, and open it where there is a screen (demo-report.html)",
    )  # fmt: skip
    demo.set_defaults(action=_demo)

    doctor = commands.add_parser("doctor", help="what this machine offers: versions, BLAS, compiler, GPU")
    doctor.set_defaults(action=_doctor)

    alias = commands.add_parser(
        "alias", help="make `import torch` mean pullback in this environment, for every process"
    )
    what = alias.add_mutually_exclusive_group()
    what.add_argument("--remove", action="store_true", help="take the alias away")
    what.add_argument(
        "--status", action="store_true", help="say what `torch` is here; exit status 0 if it is the alias"
    )
    alias.set_defaults(action=_alias)

    scan = commands.add_parser("scan", help="list the names of torch that a program or package uses and pullback lacks")
    scan.add_argument("target", nargs="+", metavar="PATH|PACKAGE")
    scan.add_argument("--all", action="store_true", help="also names that the sources allow to be absent")
    scan.set_defaults(action=_scan)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; the exit status is its own."""
    args = _parser().parse_args(argv)
    return args.action(args)
