"""The commands of `faregate`: one file each, with its click commands in a list named `commands`.

`client.py` finds a running system for the commands that ask one, `output.py` prints.
"""
