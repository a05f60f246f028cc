"""The engine `diffusers`: images and video by any pipeline of the library of that name.

engine.py      what the worker sees
line.py        which requests run next, and together
shelf.py       which models are in memory
tasks/         one file a task: from a caller's input to what a pipeline is to draw
thread.py      the one thread that torch works in
pipeline.py    a loaded model: calls its pipelines
pictures.py    image files; films.py video files
"""
