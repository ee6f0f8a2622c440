"""The terminal monitor: a run, a folder of runs or a server, live.

`panels` says what is shown, `drawing` where, `app` puts it on a terminal and `plain` into a pipe.
"""
