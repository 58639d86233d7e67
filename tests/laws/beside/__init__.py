"""Random programs beside another library: one text, run by pullback and by a library of the same API, statement by statement.

    python -m tests.laws.beside torch --seeds 0:1000      every program of these seeds, by both
    python -m tests.laws.beside torch --seeds 17 --show   one program, its text and what differs

`calls` says what may be called (the samples of the operator table, and what works on any tensor), `draw` makes a program of a
seed, `namespace` is what the names in its text mean in a library, `look` compares what both made of a statement, `choices` says
which differences are ours and why. The project's own tests run the programs beside pullback itself, twice and compiled.
"""
