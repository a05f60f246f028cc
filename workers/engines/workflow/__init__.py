"""The engine `workflow`: a model that is a small graph of other models, whose queues its steps go through.

    options.py    the graph, read and checked
    values.py     templates filled in: what references give
    ask.py        one step at a model: a request in its pool's queue, followed to its end
    course.py     one run: steps as the output needs them
    account.py    what is told of a run: progress, trace, units
    clock.py      which phase the time of a run belongs to
    local.py      what the worker does itself: join.py, trim.py, frames.py, by films.py
    stream.py     the whole output for a caller who streams
    engine.py     the engine

A step's request has an id made from its workflow's id, the attempt, its name and its input. An attempt that follows a
lost one looks for the steps of those before it: what has succeeded is taken over, and what still runs is waited for, so
that nothing runs twice that did not have to.
"""
